package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// maxReport is the size in bytes of what a server says to an update.
const maxReport = 1 << 20

// errRefused says that a server did not make an update. What it says about that is not kept.
var errRefused = unavailable(effect.ReasonRejected, "the server refused the update")

// A RefUpdate moves a ref.
type RefUpdate struct {
	Ref string
	// Old is the commit it was observed at; empty: it was not there. The server refuses the update if that is not so.
	Old string
	// New commit.
	New string
}

// Push updates one ref, sending objects in a pack. Nothing is forced and nothing but the ref is touched. The error is that of
// the context or one that Unavailable tells the reason of; the update may have been made all the same.
func (r *Remote) Push(ctx context.Context, update RefUpdate, pack []byte) error {
	talk, err := r.talk(ctx, receivePack)
	if err != nil {
		return err
	}
	defer talk.Close() //nolint:errcheck // The report is read by then.
	return r.push(ctx, talk, update, pack)
}

func (r *Remote) push(ctx context.Context, talk conversation, update RefUpdate, pack []byte) error {
	listing, err := r.listing(ctx, talk)
	if err != nil {
		return err
	}
	if !listing.can("report-status") {
		return unavailable(effect.ReasonUnreadable, "the server does not report on updates")
	}
	if listing.refs[update.Ref] != update.Old {
		return errRefused
	}
	body, withBand := pushRequest(listing, update)
	answer, err := talk.exchange(ctx, append(body, pack...))
	if err != nil {
		return err
	}
	defer answer.Close() //nolint:errcheck // It is read as far as it says something.
	var report io.Reader = &limitedReader{from: answer, left: maxReport}
	if withBand {
		report = &bandReader{packets: pktline.NewScanner(report)}
	}
	return failed(ctx, "the report on the update was interrupted", readReport(report, update.Ref))
}

func pushRequest(listing *Listing, update RefUpdate) (body []byte, withBand bool) {
	old := update.Old
	if old == "" {
		old = zeroID
	}
	capabilities := "report-status"
	if withBand = listing.can("side-band-64k"); withBand {
		capabilities += " side-band-64k"
	}
	if listing.can("agent") {
		capabilities += " agent=" + agent
	}
	var r request
	r.packet(old + " " + update.New + " " + update.Ref + "\x00" + capabilities)
	r.flush()
	return r.Bytes(), withBand
}

// readReport takes as success only a report that has both the pack and the ref as good.
func readReport(report io.Reader, ref string) error {
	packets := pktline.NewScanner(report)
	unpacked, updated := false, false
	for packets.Scan() && len(packets.Bytes()) > 0 {
		switch strings.TrimSuffix(string(packets.Bytes()), "\n") {
		case "unpack ok":
			unpacked = true
		case "ok " + ref:
			updated = true
		default:
			return errRefused
		}
	}
	var refused *pktline.ErrorLine
	switch err := packets.Err(); {
	case errors.As(err, &refused):
		return errRefused
	case err != nil:
		return err
	case !unpacked || !updated:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// PackFor is a pack of the run's own objects that a head needs beyond a commit on its chain, or, where that is empty, beyond
// the start of its branch.
func (o *Objects) PackFor(w Worktree, beyond string) ([]byte, error) {
	if beyond == "" {
		beyond = w.Start
	}
	known, err := o.ownBelow(w.Start, beyond, nil)
	if err != nil {
		return nil, err
	}
	wanted, err := o.ownBelow(beyond, w.Head, known)
	if err != nil {
		return nil, err
	}
	objects := map[plumbing.Hash]object{}
	for id := range wanted {
		if err := o.copyOwn(id, objects); err != nil {
			return nil, err
		}
	}
	var pack bytes.Buffer
	err = writePack(&pack, objects)
	return pack.Bytes(), err
}

// ownBelow are the own objects of the commits after one, up to another, but for those that are known.
func (o *Objects) ownBelow(after, head string, known map[plumbing.Hash]bool) (map[plumbing.Hash]bool, error) {
	found := map[plumbing.Hash]bool{}
	for at := head; at != after; {
		id, err := parseID(at)
		if err != nil {
			return nil, err
		}
		c, err := o.commit(id)
		if err != nil {
			return nil, err
		}
		if !o.isOwn(id) || len(c.parents) != 1 {
			return nil, errBrokenChain
		}
		found[id] = true
		if err := o.collect(c.tree, KindDirectory, found, known); err != nil {
			return nil, err
		}
		at = c.parents[0].String()
	}
	return found, nil
}

// collect adds an object and what it has. What is not the run's has nothing of the run below it, but for trees that came
// with a branch the run itself had pushed.
func (o *Objects) collect(id plumbing.Hash, kind Kind, found, known map[plumbing.Hash]bool) error {
	if kind == KindSubmodule || !o.isOwn(id) || found[id] || known[id] {
		return nil
	}
	found[id] = true
	if kind != KindDirectory {
		return nil
	}
	entries, err := o.entriesOf(id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := o.collect(e.id, e.kind(), found, known); err != nil {
			return err
		}
	}
	return nil
}
