package workspace

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // The trailer of a pack is SHA-1; objects are hashed with collision detection.
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	packSignature  = "PACK"
	packVersion    = 2
	packHeaderSize = 12
	// inflateBuffer is what is read ahead of a pack.
	inflateBuffer = 32 << 10
)

// errUnreadable says that what claims to be a pack or an object is none.
var errUnreadable = errors.New("not readable as Git objects")

// errTooLarge says that a pack, or what it unpacks to, exceeds its limits.
var errTooLarge = errors.New("exceeds the limits of a pack")

// An entry is one object of a pack.
type entry struct {
	id   plumbing.Hash
	kind plumbing.ObjectType
	// size of the whole object in bytes; of a delta that is not resolved yet, that of the delta.
	size int64
	// start of the entry, and of its compressed data.
	start, data int64
	// base of a delta in the pack, by its start; reference is its id where it is given by id.
	base      int64
	reference plumbing.Hash
}

func (e *entry) isDelta() bool {
	return e.kind.IsDelta()
}

// packLimits bound what a pack may unpack to.
type packLimits struct {
	// objects that a pack may have.
	objects int64
	// total size of all objects.
	total int64
	// object is the size of any one of them.
	object int64
	// delta is the size of an object that is, or is the base of, a delta: those are held in memory.
	delta int64
}

// A packReader reads a pack from front to back and knows where it is.
type packReader struct {
	in     *bufio.Reader
	offset int64
	zlib   io.ReadCloser
	limits packLimits
	total  int64
}

// Read and ReadByte count, and keep the inflater from reading beyond its stream.
func (r *packReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.offset += int64(n)
	return n, err
}

// ReadByte counts like Read.
func (r *packReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.offset++
	}
	return b, err
}

// scanPack reads the objects of a pack. Of deltas it reads where they are; all others are hashed.
func scanPack(in io.Reader, limits packLimits) ([]entry, error) {
	r := &packReader{in: bufio.NewReaderSize(in, inflateBuffer), limits: limits}
	count, err := r.header()
	if err != nil {
		return nil, err
	}
	var entries []entry
	for range count {
		e, err := r.entry()
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// header returns how many objects there are.
func (r *packReader) header() (int64, error) {
	var header [packHeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, unreadable("pack has no header", err)
	}
	if string(header[:4]) != packSignature || binary.BigEndian.Uint32(header[4:]) != packVersion {
		return 0, fmt.Errorf("%w: no pack of version %d", errUnreadable, packVersion)
	}
	count := int64(binary.BigEndian.Uint32(header[8:]))
	if count > r.limits.objects {
		return 0, fmt.Errorf("%w: it has more than %d objects", errTooLarge, r.limits.objects)
	}
	return count, nil
}

func (r *packReader) entry() (entry, error) {
	e := entry{start: r.offset}
	if err := r.entryHeader(&e); err != nil {
		return e, err
	}
	e.data = r.offset
	if err := r.grow(e.size); err != nil {
		return e, err
	}
	if e.isDelta() {
		if e.size > r.limits.delta {
			return e, fmt.Errorf("%w: a delta of %d bytes", errTooLarge, e.size)
		}
		return e, r.inflate(io.Discard, e.size)
	}
	hasher := plumbing.NewHasher(e.kind, e.size)
	if err := r.inflate(hasher, e.size); err != nil {
		return e, err
	}
	e.id = hasher.Sum()
	return e, nil
}

// entryHeader reads kind, size and base of an object.
func (r *packReader) entryHeader(e *entry) error {
	b, err := r.ReadByte()
	if err != nil {
		return unreadable("pack ends early", err)
	}
	e.kind = plumbing.ObjectType(b >> 4 & 7)
	e.size = int64(b & 15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = r.ReadByte(); err != nil || shift > 53 {
			return fmt.Errorf("%w: size of an object", errUnreadable)
		}
		e.size |= int64(b&0x7f) << shift
	}
	switch e.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		return nil
	case plumbing.REFDeltaObject:
		_, err := io.ReadFull(r, e.reference[:])
		return unreadable("base of a delta", err)
	case plumbing.OFSDeltaObject:
		return r.baseOffset(e)
	default:
		return fmt.Errorf("%w: an object of an unknown kind", errUnreadable)
	}
}

// baseOffset reads how far before a delta its base is: digits of base 128, where each continued one stands for one more.
func (r *packReader) baseOffset(e *entry) error {
	distance := int64(-1)
	for {
		b, err := r.ReadByte()
		if err != nil || distance > 1<<48 {
			return fmt.Errorf("%w: base of a delta", errUnreadable)
		}
		distance = (distance+1)<<7 | int64(b&0x7f)
		if b&0x80 == 0 {
			break
		}
	}
	if e.base = e.start - distance; distance <= 0 || e.base < packHeaderSize {
		return fmt.Errorf("%w: base of a delta is outside the pack", errUnreadable)
	}
	return nil
}

// grow counts what is unpacked.
func (r *packReader) grow(size int64) error {
	if size < 0 || size > r.limits.object || size > r.limits.total-r.total {
		return fmt.Errorf("%w: it unpacks to more than it may", errTooLarge)
	}
	r.total += size
	return nil
}

// inflate writes the data of an object, which must have exactly its size.
func (r *packReader) inflate(to io.Writer, size int64) error {
	var err error
	if r.zlib == nil {
		r.zlib, err = zlib.NewReader(r)
	} else {
		err = r.zlib.(zlib.Resetter).Reset(r, nil)
	}
	if err != nil {
		return unreadable("data of an object", err)
	}
	return copyExactly(to, r.zlib, size)
}

// copyExactly copies a stream that must end after a size.
func copyExactly(to io.Writer, from io.Reader, size int64) error {
	n, err := io.Copy(to, io.LimitReader(from, size+1))
	if err != nil {
		return unreadable("data of an object", err)
	}
	if n != size {
		return fmt.Errorf("%w: an object is not of the size it claims", errUnreadable)
	}
	return nil
}

// unreadable wraps an error of reading, if there is one. What is read from was complete before, so an early end is a
// fault of the data as well.
func unreadable(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", errUnreadable, what, err)
}

// An inflater reads compressed data at an offset. What it works with is used again.
type inflater struct {
	buffered *bufio.Reader
	zlib     io.ReadCloser
}

// read returns data that inflate to a size.
func (f *inflater) read(from io.ReaderAt, offset, size int64) ([]byte, error) {
	section := io.NewSectionReader(from, offset, 1<<62)
	if f.buffered == nil {
		f.buffered = bufio.NewReader(section)
	}
	f.buffered.Reset(section)
	var err error
	if f.zlib == nil {
		f.zlib, err = zlib.NewReader(f.buffered)
	} else {
		err = f.zlib.(zlib.Resetter).Reset(f.buffered, nil)
	}
	if err != nil {
		return nil, unreadable("data of an object", err)
	}
	// What claims a size grows the buffer only as far as there is data.
	var data bytes.Buffer
	if err := copyExactly(&data, f.zlib, size); err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// An object is one that is held in memory.
type object struct {
	kind plumbing.ObjectType
	data []byte
}

// writePack makes a pack of whole objects, in the order of their ids.
func writePack(to io.Writer, objects map[plumbing.Hash]object) error {
	ids := make([]plumbing.Hash, 0, len(objects))
	for id := range objects {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	sum := sha1.New() //nolint:gosec // It is what the format asks for.
	out := io.MultiWriter(to, sum)
	header := []byte(packSignature)
	header = binary.BigEndian.AppendUint32(header, packVersion)
	header = binary.BigEndian.AppendUint32(header, uint32(len(ids)))
	if _, err := out.Write(header); err != nil {
		return err
	}
	for _, id := range ids {
		if err := writeEntry(out, objects[id]); err != nil {
			return err
		}
	}
	_, err := to.Write(sum.Sum(nil))
	return err
}

func writeEntry(to io.Writer, o object) error {
	size := len(o.data)
	header := []byte{byte(o.kind)<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		header[len(header)-1] |= 0x80
		header = append(header, byte(size&0x7f))
	}
	if _, err := to.Write(header); err != nil {
		return err
	}
	z := zlib.NewWriter(to)
	if _, err := z.Write(o.data); err != nil {
		return err
	}
	return z.Close()
}

func compareIDs(a, b plumbing.Hash) int {
	return bytes.Compare(a[:], b[:])
}
