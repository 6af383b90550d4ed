package workspace

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // The trailer of a pack is SHA-1; objects are hashed with collision detection.
	"errors"
	"fmt"
	"maps"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// MaxPacks is the size in bytes of all packs a run may have.
const MaxPacks = 32 << 20

// Limits of one pack of a run. It is written by this package, so they only bound what a damaged one could do.
const (
	maxOwnObjects = 1 << 20
	maxOwnTotal   = 1 << 30
	// maxTree is the size of a tree or commit that is read.
	maxTree = 16 << 20
)

// ErrDamaged says that an object of the run is not there or is not what its id says.
var ErrDamaged = errors.New("workspace is damaged")

// ErrBaseLost says that what was fetched turned out to be damaged on disk. It is gone now and can be fetched again.
var ErrBaseLost = errors.New("fetched objects are damaged")

// Objects are those a run works with: what was fetched of each of its repositories, and what the run made. They are for
// one caller at a time.
type Objects struct {
	bases []*Base
	own   map[plumbing.Hash]located
	// packed is the size of the packs that were loaded or taken.
	packed   int64
	fresh    map[plumbing.Hash]object
	inflater inflater
}

// located is an object in a pack.
type located struct {
	pack []byte
	entry
}

// NewObjects reads from these bases, which remain the caller's to close.
func NewObjects(bases ...*Base) *Objects {
	return &Objects{bases: bases, own: map[plumbing.Hash]located{}, fresh: map[plumbing.Hash]object{}}
}

// AddBase has objects of one more commit.
func (o *Objects) AddBase(base *Base) {
	o.bases = append(o.bases, base)
}

// Load adds a pack that TakePack gave. Its bytes must not change afterwards. The error wraps ErrDamaged.
func (o *Objects) Load(pack []byte) error {
	if err := checkTrailer(pack); err != nil {
		return err
	}
	body := pack[:len(pack)-sha1.Size]
	entries, err := scanPack(bytes.NewReader(body), packLimits{objects: maxOwnObjects, total: maxOwnTotal, object: maxOwnTotal})
	if err != nil {
		return fmt.Errorf("%w: read pack: %w", ErrDamaged, err)
	}
	for _, e := range entries {
		if e.isDelta() {
			return fmt.Errorf("%w: pack has a delta", ErrDamaged)
		}
		o.own[e.id] = located{pack: body, entry: e}
	}
	o.packed += int64(len(pack))
	return nil
}

func checkTrailer(pack []byte) error {
	if len(pack) < packHeaderSize+sha1.Size {
		return fmt.Errorf("%w: pack is cut off", ErrDamaged)
	}
	body, trailer := pack[:len(pack)-sha1.Size], pack[len(pack)-sha1.Size:]
	if sum := sha1.Sum(body); !bytes.Equal(sum[:], trailer) { //nolint:gosec // It is what the format asks for.
		return fmt.Errorf("%w: pack is not what it was", ErrDamaged)
	}
	return nil
}

// TakePack returns the objects made since the last one as one pack, which is the same for the same objects, or nil if
// there are none. The objects are loaded from then on. The failure is WORKSPACE_TOO_LARGE.
func (o *Objects) TakePack() ([]byte, error) {
	if len(o.fresh) == 0 {
		return nil, nil
	}
	var pack bytes.Buffer
	if err := writePack(&pack, o.fresh); err != nil {
		return nil, fmt.Errorf("write pack: %w", err)
	}
	if o.packed+int64(pack.Len()) > MaxPacks {
		return nil, &effect.Failure{
			Code: CodeWorkspaceTooLarge, Message: fmt.Sprintf("the run's own objects exceed %d bytes", MaxPacks),
		}
	}
	if err := o.Load(pack.Bytes()); err != nil {
		return nil, err
	}
	clear(o.fresh)
	return pack.Bytes(), nil
}

// Discard forgets the objects made since the last pack, of an action whose result is not kept.
func (o *Objects) Discard() {
	clear(o.fresh)
}

// write keeps an object, unless the run made it before. It does so even if a base has it, since the run may work with other
// bases when it is read again.
func (o *Objects) write(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	id := plumbing.ComputeHash(kind, data)
	if !o.isOwn(id) {
		o.fresh[id] = object{kind: kind, data: data}
	}
	return id
}

// atomically runs what makes objects; if it fails, it made none.
func (o *Objects) atomically(run func() error) error {
	before := maps.Clone(o.fresh)
	err := run()
	if err != nil {
		o.fresh = before
	}
	return err
}

// isOwn tells whether the run made an object.
func (o *Objects) isOwn(id plumbing.Hash) bool {
	_, isFresh := o.fresh[id]
	_, isPacked := o.own[id]
	return isFresh || isPacked
}

// size of an object of a kind, without reading it.
func (o *Objects) size(kind plumbing.ObjectType, id plumbing.Hash) (int64, error) {
	if fresh, found := o.fresh[id]; found && fresh.kind == kind {
		return int64(len(fresh.data)), nil
	}
	if own, found := o.own[id]; found && own.kind == kind {
		return own.size, nil
	}
	for _, base := range o.bases {
		if r, found, err := base.find(id); err != nil || found && r.kind == kind {
			return r.size, err
		}
	}
	return 0, missing(id)
}

// read returns the data of an object of a kind, which must not be changed. It has at most a size that the caller knows to
// be bearable.
func (o *Objects) read(kind plumbing.ObjectType, id plumbing.Hash, maxSize int64) ([]byte, error) {
	if fresh, found := o.fresh[id]; found && fresh.kind == kind {
		return fresh.data, nil
	}
	if own, found := o.own[id]; found && own.kind == kind {
		return o.readOwn(own, id, maxSize)
	}
	for _, base := range o.bases {
		if data, found, err := base.read(kind, id, maxSize); err != nil || found {
			return data, err
		}
	}
	return nil, missing(id)
}

func (o *Objects) readOwn(own located, id plumbing.Hash, maxSize int64) ([]byte, error) {
	if own.size > maxSize {
		return nil, fmt.Errorf("%w: object %s has %d bytes", errTooLarge, id, own.size)
	}
	data, err := o.inflater.read(bytes.NewReader(own.pack), own.data, own.size)
	if err == nil && plumbing.ComputeHash(own.kind, data) != id {
		err = errUnreadable
	}
	if err != nil {
		return nil, fmt.Errorf("%w: object %s: %w", ErrDamaged, id, err)
	}
	return data, nil
}

// A base is complete when it is opened, so what is not there is the run's.
func missing(id plumbing.Hash) error {
	return fmt.Errorf("%w: object %s is not there", ErrDamaged, id)
}

// copyOwn puts an object of the run, and nothing else, into a set.
func (o *Objects) copyOwn(id plumbing.Hash, into map[plumbing.Hash]object) error {
	if fresh, found := o.fresh[id]; found {
		into[id] = fresh
		return nil
	}
	own := o.own[id]
	data, err := o.readOwn(own, id, maxOwnTotal)
	into[id] = object{kind: own.kind, data: data}
	return err
}

// parseID reads an id as states hold it.
func parseID(text string) (plumbing.Hash, error) {
	if !IsCommitID(text) {
		return plumbing.ZeroHash, fmt.Errorf("%w: an id is none", ErrDamaged)
	}
	return plumbing.NewHash(text), nil
}

// IsCommitID tells whether a text is a whole id in lower-case hex digits.
func IsCommitID(text string) bool {
	if len(text) != 2*sha1.Size {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
