package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// fetch writes a pack that has a commit, unless the remote does not. Where the commit is at a ref, or the server gives any
// id, that is all it has; elsewhere it has everything that branches and tags have.
func (r *Remote) fetch(ctx context.Context, commit string, pack io.Writer) error {
	talk, err := r.talk(ctx, uploadPack)
	if err != nil {
		return err
	}
	defer talk.Close() //nolint:errcheck // The pack is read to its end by then.
	listing, err := r.listing(ctx, talk)
	if err != nil {
		return err
	}
	wanted, exact := listing.wanted(commit)
	if len(wanted) == 0 {
		return unavailable(effect.ReasonMissingObjects, "the repository is empty")
	}
	if !listing.can("side-band-64k") {
		return unavailable(effect.ReasonUnreadable, "the server speaks an old protocol")
	}
	depth := exact && listing.can("shallow")
	answer, err := talk.exchange(ctx, fetchRequest(listing, wanted, depth))
	if err != nil {
		return err
	}
	defer answer.Close() //nolint:errcheck // The pack is read to its end by then.
	limited := &limitedReader{from: answer, left: r.Limits.orDefault().Received}
	return failed(ctx, "the pack was interrupted", receivePackData(limited, pack, depth))
}

// wanted are the ids to ask for. They are exact if the commit is what they have, and nothing of it is in its history.
func (l *Listing) wanted(commit string) (ids []string, exact bool) {
	if l.can("allow-reachable-sha1-in-want") || l.can("allow-any-sha1-in-want") {
		return []string{commit}, true
	}
	for _, name := range slices.Sorted(maps.Keys(l.refs)) {
		if l.refs[name] == commit || l.peeled[name] == commit {
			return []string{l.refs[name]}, true
		}
		if strings.HasPrefix(name, headsPrefix) || strings.HasPrefix(name, tagsPrefix) {
			ids = append(ids, l.refs[name])
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), false
}

func fetchRequest(listing *Listing, wanted []string, isDepthOne bool) []byte {
	wishes := []string{"", "side-band-64k", "ofs-delta", "no-progress"}
	wishes = slices.DeleteFunc(wishes, func(wish string) bool { return wish != "" && !listing.can(wish) })
	if listing.can("agent") {
		wishes = append(wishes, "agent="+agent)
	}
	// The first line has the wishes, after a blank.
	var body request
	for _, id := range wanted {
		body.packet("want " + id + strings.Join(wishes, " ") + "\n")
		wishes = nil
	}
	if isDepthOne {
		body.packet("deepen 1\n")
	}
	body.flush()
	body.packet("done\n")
	return body.Bytes()
}

// receivePackData reads what the server says before the pack, and then the pack.
func receivePackData(answer io.Reader, pack io.Writer, isDepthOne bool) error {
	packets := pktline.NewScanner(answer)
	for isDepthOne {
		if !packets.Scan() {
			return answerError(packets.Err())
		}
		isDepthOne = len(packets.Bytes()) > 0
	}
	if !packets.Scan() {
		return answerError(packets.Err())
	}
	if !bytes.Equal(packets.Bytes(), []byte("NAK\n")) {
		return unavailable(effect.ReasonUnreadable, "the answer to a fetch is malformed")
	}
	_, err := io.Copy(localWriter{pack}, &bandReader{packets: packets})
	if errors.Is(err, errLimit) {
		return failure(CodeRepositoryTooLarge, "the repository at the commit is too large")
	}
	return err
}

func answerError(err error) error {
	var refused *pktline.ErrorLine
	switch {
	case errors.As(err, &refused):
		return unavailable(effect.ReasonMissingObjects, "the server does not give the commit")
	case err == nil:
		return io.ErrUnexpectedEOF
	}
	return err
}

// Bands of a stream in packets.
const (
	bandData     = 1
	bandProgress = 2
)

// A bandReader reads the data of a stream that mixes them with other messages. It ends at the mark of its end; anything else
// is an error.
type bandReader struct {
	packets *pktline.Scanner
	pending []byte
}

func (r *bandReader) Read(p []byte) (int, error) {
	for len(r.pending) == 0 {
		if !r.packets.Scan() {
			return 0, answerError(r.packets.Err())
		}
		packet := r.packets.Bytes()
		if len(packet) == 0 {
			return 0, io.EOF
		}
		switch packet[0] {
		case bandData:
			r.pending = packet[1:]
		case bandProgress:
		default:
			return 0, unavailable(effect.ReasonServer, "the server gave up")
		}
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}
