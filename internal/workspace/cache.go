package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// receivingPrefix of directories that are being filled.
const receivingPrefix = "receiving-"

// A Cache keeps what was fetched on disk, up to a size. It may be used by several callers at once; what one of them has open
// stays readable when it is thrown out.
type Cache struct {
	dir   string
	limit int64
	clock clock.PassiveClock

	mu   sync.Mutex
	busy map[string]*fetching
}

// fetching has the callers that want the same take turns.
type fetching struct {
	mu      sync.Mutex
	callers int
}

// A Key names what is fetched.
type Key struct {
	// Scope keeps apart those who may not see what others fetched, such as namespaces.
	Scope string
	// Fingerprint of the repository's locator.
	Fingerprint string
	// Commit is a whole id.
	Commit string
}

func (k Key) directory() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{k.Scope, k.Fingerprint, k.Commit}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// NewCache uses a directory, which is made if needed and belongs to this cache alone, for up to so many bytes.
func NewCache(dir string, limit int64, passive clock.PassiveClock) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	unfinished, err := filepath.Glob(filepath.Join(dir, receivingPrefix+"*"))
	for _, path := range unfinished {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return nil, fmt.Errorf("clean cache: %w", err)
	}
	return &Cache{dir: dir, limit: limit, clock: passive, busy: map[string]*fetching{}}, nil
}

// Open returns what the cache has of a commit, or fetches it from the remote first. An error is a *effect.Failure
// (REPOSITORY_TOO_LARGE, REF_NOT_FOUND for an id of something else than a commit), that of the context, one that
// Unavailable tells the reason of, or a fault of the disk.
func (c *Cache) Open(ctx context.Context, key Key, remote *Remote) (*Base, error) {
	if !IsCommitID(key.Commit) {
		return nil, errNoCommit
	}
	defer c.enter(key.directory())()
	dir := filepath.Join(c.dir, key.directory())
	base, err := c.open(dir, key.Commit)
	if err == nil {
		return base, nil
	}
	// Whatever is wrong with it, it is not needed.
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("remove from cache: %w", err)
	}
	if err := c.fetch(ctx, dir, key.Commit, remote); err != nil {
		return nil, err
	}
	if err := c.evict(key.directory()); err != nil {
		return nil, err
	}
	return c.open(dir, key.Commit)
}

// enter waits for the others that want the same.
func (c *Cache) enter(name string) (leave func()) {
	c.mu.Lock()
	turn := c.busy[name]
	if turn == nil {
		turn = &fetching{}
		c.busy[name] = turn
	}
	turn.callers++
	c.mu.Unlock()
	turn.mu.Lock()
	return func() {
		turn.mu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		if turn.callers--; turn.callers == 0 {
			delete(c.busy, name)
		}
	}
}

// open opens an entry and notes that it was used.
func (c *Cache) open(dir, commit string) (*Base, error) {
	base, err := openBase(dir, commit)
	if err != nil {
		return nil, err
	}
	now := c.clock.Now()
	if err := os.Chtimes(dir, now, now); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	base.lost = func() {
		// If it stays, the next one to read it finds the same.
		_ = os.Remove(filepath.Join(dir, indexFile))
	}
	return base, nil
}

// fetch fills a directory aside and puts it into place when it is complete.
func (c *Cache) fetch(ctx context.Context, dir, commit string, remote *Remote) (err error) {
	aside, err := os.MkdirTemp(c.dir, receivingPrefix)
	if err != nil {
		return fmt.Errorf("make place in cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	if err := receive(ctx, aside, commit, remote); err != nil {
		return err
	}
	return os.Rename(aside, dir)
}

func receive(ctx context.Context, dir, commit string, remote *Remote) (err error) {
	pack, err := os.Create(filepath.Join(dir, packFile))
	if err != nil {
		return fmt.Errorf("make pack: %w", err)
	}
	defer func() { err = errors.Join(err, pack.Close()) }()
	if err := remote.fetch(ctx, commit, pack); err != nil {
		return err
	}
	index, err := os.Create(filepath.Join(dir, indexFile))
	if err != nil {
		return fmt.Errorf("make index: %w", err)
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	if err := unpack(pack, index, remote.Limits.pack()); err != nil {
		return received(err)
	}
	base := &Base{Commit: commit, pack: pack, index: index}
	if err := base.check(); err != nil {
		return err
	}
	return received(base.checkComplete())
}

// received classifies what is wrong with data of a remote.
func received(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return failure(CodeRepositoryTooLarge, "the repository at the commit is too large")
	case errors.Is(err, errUnreadable):
		return unavailable(effect.ReasonUnreadable, err.Error())
	}
	return err
}

// evict removes what was not used for longest, but for one entry, until the rest fits.
func (c *Cache) evict(keep string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, err := c.list()
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b cached) int { return a.used.Compare(b.used) })
	total := int64(0)
	for _, e := range entries {
		total += e.size
	}
	for _, e := range entries {
		if total <= c.limit {
			break
		}
		if e.name == keep {
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.dir, e.name)); err != nil {
			return fmt.Errorf("remove from cache: %w", err)
		}
		total -= e.size
	}
	return nil
}

// cached is an entry of a cache.
type cached struct {
	name string
	size int64
	used time.Time
}

func (c *Cache) list() ([]cached, error) {
	dirs, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, fmt.Errorf("list cache: %w", err)
	}
	var entries []cached
	for _, dir := range dirs {
		if strings.HasPrefix(dir.Name(), receivingPrefix) {
			continue
		}
		info, err := dir.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list cache: %w", err)
		}
		entries = append(entries, cached{name: dir.Name(), size: sizeOf(filepath.Join(c.dir, dir.Name())), used: info.ModTime()})
	}
	return entries, nil
}

// sizeOf the files of an entry. One that is just being removed has none.
func sizeOf(dir string) int64 {
	total := int64(0)
	for _, name := range []string{packFile, indexFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			total += info.Size()
		}
	}
	return total
}

var _ io.Closer = (*Base)(nil)
