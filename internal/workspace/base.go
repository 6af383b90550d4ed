package workspace

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// Names of the files of what was fetched: the pack as it was received, with the objects that were deltas appended whole, and
// a table of its objects by id.
const (
	packFile  = "pack"
	indexFile = "index"
)

// The table has the size of the pack and a digest of the rest, then a record of fixed size for each object.
const (
	indexHeader = 8 + sha256.Size
	recordSize  = 20 + 1 + 8 + 8
)

// A record says where an object is.
type record struct {
	id   plumbing.Hash
	kind plumbing.ObjectType
	// size of the object, and where its compressed data start.
	size, data int64
}

// A Base is what was fetched of a commit: everything its tree has. It reads from disk and holds no object. It is for one
// caller at a time; another one opens it again.
type Base struct {
	// Commit that was fetched.
	Commit   string
	pack     *os.File
	index    *os.File
	count    int64
	inflater inflater
	// lost is called when an object turns out to be damaged.
	lost func()
}

// Close gives its files back. Objects that read from it must not be used afterwards.
func (b *Base) Close() error {
	return errors.Join(b.pack.Close(), b.index.Close())
}

// openBase opens what is in a directory if it is as it was written, as far as that is seen without reading the objects.
func openBase(dir, commit string) (*Base, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // Nothing is written through it.
	b := &Base{Commit: commit}
	if b.pack, err = root.Open(packFile); err != nil {
		return nil, err
	}
	if b.index, err = root.Open(indexFile); err != nil {
		return nil, errors.Join(err, b.pack.Close())
	}
	if err := b.check(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Base) check() error {
	packInfo, err := b.pack.Stat()
	if err != nil {
		return err
	}
	indexInfo, err := b.index.Stat()
	if err != nil {
		return err
	}
	var header [indexHeader]byte
	if _, err := b.index.ReadAt(header[:], 0); err != nil {
		return fmt.Errorf("%w: read header: %w", ErrBaseLost, err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(b.index, indexHeader, indexInfo.Size())); err != nil {
		return err
	}
	if int64(binary.BigEndian.Uint64(header[:])) != packInfo.Size() || !bytes.Equal(sum.Sum(nil), header[8:]) {
		return ErrBaseLost
	}
	b.count = (indexInfo.Size() - indexHeader) / recordSize
	return nil
}

// find looks an object up.
func (b *Base) find(id plumbing.Hash) (record, bool, error) {
	low, high := int64(0), b.count
	for low < high {
		middle := (low + high) / 2
		r, err := b.record(middle)
		if err != nil {
			return r, false, err
		}
		switch c := compareIDs(r.id, id); {
		case c == 0:
			return r, true, nil
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return record{}, false, nil
}

func (b *Base) record(i int64) (record, error) {
	var buffer [recordSize]byte
	if _, err := b.index.ReadAt(buffer[:], indexHeader+i*recordSize); err != nil {
		return record{}, b.isLost(err)
	}
	r := record{
		kind: plumbing.ObjectType(buffer[20]),
		size: int64(binary.BigEndian.Uint64(buffer[21:])), data: int64(binary.BigEndian.Uint64(buffer[29:])),
	}
	copy(r.id[:], buffer[:])
	return r, nil
}

// read returns an object, which is checked against its id.
func (b *Base) read(kind plumbing.ObjectType, id plumbing.Hash, maxSize int64) ([]byte, bool, error) {
	r, found, err := b.find(id)
	if err != nil || !found || r.kind != kind {
		return nil, false, err
	}
	if r.size > maxSize {
		return nil, false, fmt.Errorf("%w: object %s has %d bytes", errTooLarge, id, r.size)
	}
	data, err := b.inflater.read(b.pack, r.data, r.size)
	if err == nil && plumbing.ComputeHash(kind, data) != id {
		err = errUnreadable
	}
	if err != nil {
		return nil, false, b.isLost(err)
	}
	return data, true, nil
}

// isLost removes what is damaged, so that it is fetched again.
func (b *Base) isLost(err error) error {
	if b.lost != nil {
		b.lost()
	}
	return fmt.Errorf("%w: %w", ErrBaseLost, err)
}

// An unpacker makes a base of a pack that was received.
type unpacker struct {
	pack     *os.File
	limits   packLimits
	entries  []entry
	total    int64
	inflater inflater
	// end of the file, where objects that were deltas are appended.
	end int64
	// byOffset and byID are the deltas that wait for a base, by its place among the entries and by its id.
	byOffset map[int][]int
	byID     map[plumbing.Hash][]int
}

// unpack reads a pack, makes whole objects of its deltas and writes the table. A pack whose deltas have a base elsewhere is
// unreadable.
func unpack(pack, index *os.File, limits packLimits) error {
	u := &unpacker{pack: pack, limits: limits, byOffset: map[int][]int{}, byID: map[plumbing.Hash][]int{}}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var err error
	if u.entries, err = scanPack(pack, limits); err != nil {
		return err
	}
	if u.end, err = pack.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	if err := u.resolve(); err != nil {
		return err
	}
	return u.writeIndex(index)
}

// resolve makes whole objects of deltas, each after its base. A base is read back for its deltas, so that only one is held
// at a time however long the chains are.
func (u *unpacker) resolve() error {
	waiting, err := u.arrange()
	if err != nil {
		return err
	}
	var ready []int
	for i := range u.entries {
		if !u.entries[i].isDelta() && u.isBase(i) {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		resolved, err := u.applyAll(i)
		if err != nil {
			return err
		}
		waiting -= len(resolved)
		for _, j := range resolved {
			if u.isBase(j) {
				ready = append(ready, j)
			}
		}
	}
	if waiting > 0 {
		return fmt.Errorf("%w: a delta has no base in the pack", errUnreadable)
	}
	return nil
}

// arrange finds the deltas and what they wait for.
func (u *unpacker) arrange() (waiting int, err error) {
	for i := range u.entries {
		switch e := &u.entries[i]; e.kind {
		case plumbing.OFSDeltaObject:
			base, found := slices.BinarySearchFunc(u.entries, e.base, func(e entry, start int64) int {
				return int(e.start - start)
			})
			if !found {
				return 0, fmt.Errorf("%w: a delta has no base in the pack", errUnreadable)
			}
			u.byOffset[base] = append(u.byOffset[base], i)
			waiting++
		case plumbing.REFDeltaObject:
			u.byID[e.reference] = append(u.byID[e.reference], i)
			waiting++
		default:
			u.total += e.size
		}
	}
	return waiting, nil
}

func (u *unpacker) isBase(i int) bool {
	return len(u.byOffset[i]) > 0 || len(u.byID[u.entries[i].id]) > 0
}

// applyAll resolves all deltas of a base.
func (u *unpacker) applyAll(i int) ([]int, error) {
	base := u.entries[i]
	if base.size > u.limits.delta {
		return nil, fmt.Errorf("%w: the base of a delta has %d bytes", errTooLarge, base.size)
	}
	data, err := u.inflater.read(u.pack, base.data, base.size)
	if err != nil {
		return nil, err
	}
	// An id may be there twice; its deltas are resolved once.
	deltas := slices.Concat(u.byOffset[i], u.byID[base.id])
	delete(u.byOffset, i)
	delete(u.byID, base.id)
	for _, j := range deltas {
		if err := u.apply(&u.entries[j], base.kind, data); err != nil {
			return nil, err
		}
	}
	return deltas, nil
}

// apply makes the object of a delta and appends it to the file.
func (u *unpacker) apply(e *entry, kind plumbing.ObjectType, base []byte) error {
	delta, err := u.inflater.read(u.pack, e.data, e.size)
	if err != nil {
		return err
	}
	size, err := targetSize(delta)
	if err != nil {
		return err
	}
	if u.total += size; size > u.limits.delta || u.total > u.limits.total {
		return fmt.Errorf("%w: it unpacks to more than it may", errTooLarge)
	}
	data, err := patch(base, delta, size)
	if err != nil {
		return err
	}
	e.kind, e.size, e.data, e.id = kind, size, u.end, plumbing.ComputeHash(kind, data)
	return u.append(data)
}

func patch(base, delta []byte, size int64) ([]byte, error) {
	data, err := packfile.PatchDelta(base, delta)
	if err != nil {
		return nil, unreadable("a delta", err)
	}
	if int64(len(data)) != size {
		return nil, fmt.Errorf("%w: a delta is not of the size it claims", errUnreadable)
	}
	return data, nil
}

// targetSize is the size of what a delta makes. It is the second number of a delta.
func targetSize(delta []byte) (int64, error) {
	_, n := binary.Uvarint(delta)
	if n <= 0 {
		return 0, fmt.Errorf("%w: a delta has no sizes", errUnreadable)
	}
	size, m := binary.Uvarint(delta[n:])
	if m <= 0 || size > 1<<40 {
		return 0, fmt.Errorf("%w: a delta has no sizes", errUnreadable)
	}
	return int64(size), nil
}

func (u *unpacker) append(data []byte) error {
	var compressed bytes.Buffer
	z, err := zlib.NewWriterLevel(&compressed, zlib.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := z.Write(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	n, err := u.pack.WriteAt(compressed.Bytes(), u.end)
	u.end += int64(n)
	return err
}

// writeIndex writes the table. The entries are not needed in their order any more.
func (u *unpacker) writeIndex(index *os.File) error {
	slices.SortFunc(u.entries, func(a, b entry) int { return compareIDs(a.id, b.id) })
	u.entries = slices.CompactFunc(u.entries, func(a, b entry) bool { return a.id == b.id })
	if _, err := index.Seek(indexHeader, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	buffered := bufio.NewWriter(index)
	out := io.MultiWriter(buffered, sum)
	var buffer [recordSize]byte
	for _, e := range u.entries {
		copy(buffer[:], e.id[:])
		buffer[20] = byte(e.kind)
		binary.BigEndian.PutUint64(buffer[21:], uint64(e.size))
		binary.BigEndian.PutUint64(buffer[29:], uint64(e.data))
		if _, err := out.Write(buffer[:]); err != nil {
			return err
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint64(nil, uint64(u.end))
	_, err := index.WriteAt(sum.Sum(header), 0)
	return err
}
