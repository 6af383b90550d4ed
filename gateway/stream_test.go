package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
)

// following is an open stream.
type following struct {
	response *http.Response
	lines    chan string
}

// follow opens a stream as a person; it is closed with the spec.
func (w *world) follow(bearer, path string, headers map[string]string) *following {
	GinkgoHelper()
	w.clock.Step(time.Second)
	ctx, end := context.WithCancel(context.Background())
	DeferCleanup(end)
	request, err := http.NewRequestWithContext(ctx, "GET", w.url+w.path(path), nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+bearer)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := issuer.Client().Do(request)
	Expect(err).NotTo(HaveOccurred())
	f := &following{response: response, lines: make(chan string, 1000)}
	go func() {
		defer close(f.lines)
		defer func() { _ = response.Body.Close() }()
		scanner := bufio.NewScanner(response.Body)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			f.lines <- scanner.Text()
		}
	}()
	return f
}

// message is a server-sent event.
type message struct {
	id, kind string
	data     map[string]any
}

// next is the next message; comments are passed over.
func (f *following) next() message {
	GinkgoHelper()
	var m message
	for {
		var line string
		Eventually(f.lines).Should(Receive(&line))
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case name == "id":
			m.id = value
		case name == "event":
			m.kind = value
		case name == "data":
			Expect(json.Unmarshal([]byte(value), &m.data)).To(Succeed())
		case line == "" && m.kind != "":
			return m
		}
	}
}

var asStream = map[string]string{"Accept": "text/event-stream"}

var _ = Describe("The stream of a composition", func() {
	var w *world
	var comp *api.Composition
	var token string

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		comp = w.composition("triage", blank())
		w.operate()
		w.session("triage-agent", "triage")
		comp = w.observed(comp)
		token = w.person("alice", allow("compositions", "watch"), allow("turns", "get"))
	}, NodeTimeout(time.Minute))

	It("workbench 53: shows ai-working, item changes, the change set, idle", func(ctx context.Context) {
		w.ctx = ctx
		id := w.namespace + "/triage"
		stream := w.follow(token, "/compositions/{ns}/triage/events", asStream)
		Expect(stream.response.Header.Get("Content-Type")).To(Equal("text/event-stream"))
		Expect(stream.next()).To(Equal(message{kind: "composition-turn", data: map[string]any{"compositionId": id, "turnId": "", "state": "idle"}}))

		turn := w.turn(comp, "triage-1")
		Expect(stream.next()).To(Equal(message{kind: "composition-turn", data: map[string]any{"compositionId": id, "turnId": "triage-1", "state": "ai-working"}}))

		item := into[openapi.Item](w.upsert("tool", tool("ask", "one")))
		Expect(stream.next()).To(Equal(message{kind: "composition-item-changed", data: map[string]any{
			"compositionId": id, "type": "tool", "name": "ask", "contentRevision": item.ContentRevision, "author": "user",
		}}))

		By("the end of the turn, as the operator writes it")
		turn = reload(w, turn)
		set := map[string]any{"id": "triage-1", "baseRevision": revisionOf(blank()), "author": api.AuthorWorkbench, "summary": "AI turn: 0 workflow change(s)", "ops": []any{}}
		turn.Status.State, turn.Status.ChangeSet = api.TurnAwaitingResolution, raw(set)
		Expect(k8s.Status().Update(ctx, turn)).To(Succeed())
		Eventually(func() error {
			now := reload(w, comp)
			now.Status.TurnState, now.Status.CurrentTurn, now.Status.Claim, now.Status.PendingTurn = api.TurnStateIdle, "", nil, "triage-1"
			return k8s.Status().Update(ctx, now)
		}).Should(Succeed())
		changeSet := stream.next()
		Expect(changeSet.kind).To(Equal("composition-changeset"))
		Expect(changeSet.data).To(HaveKeyWithValue("turnId", "triage-1"))
		Expect(changeSet.data["changeSet"]).To(HaveKeyWithValue("summary", "AI turn: 0 workflow change(s)"))
		Expect(stream.next()).To(Equal(message{kind: "composition-turn", data: map[string]any{"compositionId": id, "turnId": "triage-1", "state": "idle"}}))

		By("an item that a person removes")
		w.edit(comp, func(comp *api.Composition) { comp.Spec.Tools = nil })
		Expect(stream.next().data).To(HaveKeyWithValue("contentRevision", ""))

		By("somebody who comes now")
		late := w.follow(token, "/compositions/{ns}/triage/events", asStream)
		Expect(late.next().data).To(HaveKeyWithValue("state", "idle"))
		Expect(late.next()).To(Equal(changeSet))

		By("the end of the composition")
		Expect(k8s.Delete(ctx, comp)).To(Succeed())
		Eventually(stream.lines).Should(BeClosed())
	}, NodeTimeout(time.Minute))

	It("shows that it lives, and does not live for ever", func(ctx context.Context) {
		w.ctx = ctx
		stream := w.follow(token, "/compositions/{ns}/triage/events", asStream)
		stream.next()
		Eventually(w.clock.HasWaiters).Should(BeTrue())
		Eventually(func(g Gomega) {
			w.clock.Step(15 * time.Second)
			g.Expect(stream.lines).To(Receive(Equal(":")))
		}).Should(Succeed())
		w.clock.Step(10 * time.Minute)
		Eventually(stream.lines).Should(BeClosed())
	}, NodeTimeout(time.Minute))

	It("is for those who may watch it", func(ctx context.Context) {
		w.ctx = ctx
		path := "/compositions/{ns}/triage/events"
		expectProblem(w.call("GET", w.path(path), tokenOf(w, "triage-agent"), nil), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badBearer)
		bob := w.person("bob", allow("compositions", "watch"))
		expectProblem(w.as(bob, "GET", path, nil), http.StatusForbidden, openapi.ProblemCodeForbidden, "may not get turns")
		expectProblem(w.as(token, "GET", "/compositions/{ns}/nothing/events", nil), http.StatusNotFound, openapi.ProblemCodeNotFound, "not found")
		By("more streams than one may have")
		for range 16 {
			w.follow(token, path, asStream).next()
		}
		expectProblem(w.as(token, "GET", path, nil), http.StatusTooManyRequests, openapi.ProblemCodeRateLimited, "")
	}, NodeTimeout(time.Minute))
})

var _ = Describe("The journal, as a person reads it", func() {
	var w *world
	var session *api.AgentSession
	var token string
	journals := func() store.Store { return store.Store{Client: k8s, Reader: k8s} }

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		session = w.session("triage-agent", "triage")
		token = w.person("alice", allow("agentsessions", "get"))
	}, NodeTimeout(time.Minute))
	say := func(ctx context.Context, from, to int64) {
		GinkgoHelper()
		var batch []journal.Entry
		for i := from; i <= to; i++ {
			batch = append(batch, journal.Entry{Sequence: i, Event: journal.Event{Type: "assistant_text", Data: map[string]any{"text": strconv.FormatInt(i, 10)}}})
		}
		_, err := journals().Append(ctx, session, batch)
		Expect(err).NotTo(HaveOccurred())
	}

	It("is one event a line", func(ctx context.Context) {
		w.ctx = ctx
		path := "/sessions/{ns}/triage-agent/events"
		empty := w.as(token, "GET", path, nil)
		Expect(empty.status).To(Equal(http.StatusOK))
		Expect(empty.body).To(BeEmpty())
		say(ctx, 1, 3)
		got := w.as(token, "GET", path, nil)
		Expect(got.header.Get("Content-Type")).To(Equal("application/jsonl"))
		lines := strings.Split(strings.TrimSpace(got.body), "\n")
		Expect(lines).To(HaveLen(3))
		Expect(lines[1]).To(MatchJSON(`{"sequence":2,"type":"assistant_text","data":{"text":"2"}}`))
		Expect(strings.Count(w.as(token, "GET", path+"?after=2", nil).body, "\n")).To(Equal(1))
		Expect(strings.Count(w.as(token, "GET", path+"?after=3", nil).body, "\n")).To(Equal(0))
		By("a cursor that is beyond the journal")
		Expect(strings.Count(w.as(token, "GET", path+"?after=4", nil).body, "\n")).To(Equal(3))
		for _, query := range []string{"?after=-1", "?after=x", "?follow=maybe"} {
			expectProblem(w.as(token, "GET", path+query, nil), http.StatusBadRequest, openapi.ProblemCodeInvalid, "")
		}
	}, NodeTimeout(time.Minute))

	It("goes on as it grows", func(ctx context.Context) {
		w.ctx = ctx
		say(ctx, 1, 2)
		stream := w.follow(token, "/sessions/{ns}/triage-agent/events?follow=true", asStream)
		first := stream.next()
		Expect(first.id).To(Equal("1"))
		Expect(first.kind).To(Equal("assistant_text"))
		Expect(first.data).To(HaveKeyWithValue("data", map[string]any{"text": "1"}))
		Expect(stream.next().id).To(Equal("2"))
		say(ctx, 3, 4)
		Expect(stream.next().id).To(Equal("3"))
		Expect(stream.next().id).To(Equal("4"))

		By("somebody who was away")
		headers := map[string]string{"Accept": "text/event-stream", "Last-Event-ID": "3"}
		Expect(w.follow(token, "/sessions/{ns}/triage-agent/events?follow=true", headers).next().id).To(Equal("4"))
		for _, beyond := range []string{"99", "nonsense"} {
			headers["Last-Event-ID"] = beyond
			Expect(w.follow(token, "/sessions/{ns}/triage-agent/events?follow=true", headers).next().id).To(Equal("1"))
		}
		By("in lines as well")
		lines := w.follow(token, "/sessions/{ns}/triage-agent/events?follow=true&after=4", nil)
		say(ctx, 5, 5)
		var line string
		Eventually(lines.lines).Should(Receive(&line))
		Expect(line).To(ContainSubstring(`"sequence":5`))
	}, NodeTimeout(time.Minute))

	It("is for those who may read the session", func(ctx context.Context) {
		w.ctx = ctx
		bob := w.person("bob")
		path := "/sessions/{ns}/triage-agent/events"
		expectProblem(w.as(bob, "GET", path, nil), http.StatusForbidden, openapi.ProblemCodeForbidden, "may not get agentsessions triage-agent")
		expectProblem(w.as(token, "GET", "/sessions/{ns}/nothing/events", nil), http.StatusNotFound, openapi.ProblemCodeNotFound, "not found")
		expectProblem(w.as("nonsense", "GET", path, nil), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badBearer)
		expectProblem(w.call("GET", w.path(path), tokenOf(w, "triage-agent"), nil), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badBearer)
	}, NodeTimeout(time.Minute))
})

var _ = Describe("A conversation", func() {
	var w *world
	var session *api.AgentSession
	texts := func() []string {
		GinkgoHelper()
		events, err := store.Store{Client: k8s, Reader: k8s}.Load(w.ctx, session)
		Expect(err).NotTo(HaveOccurred())
		var found []string
		for _, event := range events {
			found = append(found, fmt.Sprintf("%s: %v, %v", event.Type, event.Data["text"], event.Data["content"]))
		}
		return found
	}
	initialized := map[string]any{"events": []any{map[string]any{"sequence": 1, "type": "session_init", "data": map[string]any{}}}}

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		comp := w.composition("triage", blank())
		session = w.session("triage-agent", "triage")
		w.turn(comp, "triage-1")
	}, NodeTimeout(time.Minute))

	It("has what the person said ahead of the agent's work, once", func(ctx context.Context) {
		w.ctx = ctx
		for range 2 {
			Expect(w.asRunner("POST", "/events", initialized).status).To(Equal(http.StatusOK))
		}
		w.prompt(session, "the whole prompt")
		for range 2 {
			Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		}
		Expect(w.asRunner("POST", "/events", map[string]any{"events": []any{
			map[string]any{"sequence": 2, "type": "assistant_text", "data": map[string]any{"text": "Done."}},
		}}).status).To(Equal(http.StatusOK))
		Expect(texts()).To(Equal([]string{
			"session_init: <nil>, <nil>", "user_message: <nil>, Do something.", "assistant_text: Done., <nil>",
		}))
		got := reload(w, session).Status
		Expect(got.Journal.LastSeq).To(BeNumerically(">=", 1))

		By("its result, which tells how far the journal goes")
		Expect(w.asRunner("POST", "/prompts/triage-1/result", map[string]any{"outcome": "Completed"}).status).To(Equal(http.StatusNoContent))
		Expect(*reload(w, session).Status.Journal).To(Equal(api.SessionJournal{Chunks: 1, FirstSeq: 1, LastSeq: 3}))
	}, NodeTimeout(time.Minute))

	It("is told to an agent that was not there, with its first prompt alone", func(ctx context.Context) {
		w.ctx = ctx
		Expect(w.asRunner("POST", "/events", initialized).status).To(Equal(http.StatusOK))
		w.prompt(session, "the first prompt")
		Expect(into[openapi.Prompt](w.asRunner("GET", "/prompts", nil)).Text).To(Equal("the first prompt"))
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))

		By("another pod, and a notice that is the person's alone")
		now := reload(w, session)
		now.Status.Attempt, now.Status.RecapPending, now.Status.Prompt.State = 2, true, api.PromptQueued
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		Expect(store.Store{Client: k8s, Reader: k8s}.Record(ctx, now, "notice/1", journal.Event{
			Type: journal.TypeAssistantText, Data: map[string]any{"text": "It failed.", journal.MemberNotice: true},
		})).To(Succeed())
		for range 2 {
			Expect(into[openapi.Prompt](w.asRunner("GET", "/prompts", nil)).Text).To(Equal(
				"This conversation is being resumed after Axiom restarted. Your previous process ended, so here is a recap.\n" +
					"Goal: Close old issues\nRecent conversation (oldest first):\n- user: Do something.\nCall get_composition before making changes.\n\nthe first prompt"))
		}
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		Expect(reload(w, session).Status.RecapPending).To(BeFalse())
		Expect(into[openapi.Prompt](w.asRunner("GET", "/prompts", nil)).Text).To(Equal("the first prompt"))
	}, NodeTimeout(time.Minute))

	It("that shall be forgotten is not told", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "anew")
		now := reload(w, session)
		now.Status.RecapPending, now.Status.Prompt.NewConversation = true, true
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		Expect(into[openapi.Prompt](w.asRunner("GET", "/prompts", nil)).Text).To(Equal("anew"))
	}, NodeTimeout(time.Minute))

	It("workbench 42: goes on while the journal cannot be written", func(ctx context.Context) {
		broken := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if strings.Contains(o.GetName(), "-journal-") {
				return errors.New("no room")
			}
			return c.Create(ctx, o, opts...)
		}}
		w = newWorld(ctx, broken)
		comp := w.composition("triage", blank())
		session = w.session("triage-agent", "triage")
		w.turn(comp, "triage-1")
		w.prompt(session, "p")
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		Expect(w.asRunner("POST", "/prompts/triage-1/result", map[string]any{"outcome": "Completed"}).status).To(Equal(http.StatusNoContent))
	}, NodeTimeout(time.Minute))

	It("has a heartbeat while a prompt is outstanding, written once a minute", func(ctx context.Context) {
		w.ctx = ctx
		beat := func() *time.Time {
			GinkgoHelper()
			Expect(w.asRunner("POST", "/events", map[string]any{"events": []any{}}).status).To(Equal(http.StatusOK))
			if last := reload(w, session).Status.LastHeartbeatAt; last != nil {
				return &last.Time
			}
			return nil
		}
		Expect(beat()).To(BeNil())
		w.prompt(session, "p")
		first := beat()
		Expect(first).NotTo(BeNil())
		Expect(beat()).To(Equal(first))
		w.clock.Step(time.Minute)
		second := beat()
		Expect(second.After(*first)).To(BeTrue())
		w.clock.Step(time.Minute)
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		Expect(reload(w, session).Status.LastHeartbeatAt.After(*second)).To(BeTrue())
		Expect(w.asRunner("POST", "/prompts/triage-1/result", map[string]any{"outcome": "Completed"}).status).To(Equal(http.StatusNoContent))
		w.clock.Step(10 * time.Minute)
		done := reload(w, session).Status.LastHeartbeatAt
		Expect(beat().Equal(done.Time)).To(BeTrue())
	}, NodeTimeout(time.Minute))

	It("does not go on with a prompt that the operator ended", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "p")
		now := reload(w, session)
		now.Status.Prompt.State = api.PromptDone
		now.Status.Prompt.Result = &api.PromptResult{Outcome: api.OutcomeInterrupted}
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		expectProblem(w.asRunner("POST", "/prompts/triage-1/ack", nil), http.StatusConflict, openapi.ProblemCodeConflict, "was taken back")
	}, NodeTimeout(time.Minute))

	It("may have a reply of 128 KiB, however it is escaped", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "p")
		reply := strings.Repeat("\x01", 128<<10)
		Expect(w.asRunner("POST", "/prompts/triage-1/result", map[string]any{"outcome": "Completed", "reply": reply}).status).To(Equal(http.StatusNoContent))
		Expect(reload(w, session).Status.Prompt.Result.ReplyRef.Size).To(Equal(int64(128 << 10)))
	}, NodeTimeout(time.Minute))
})
