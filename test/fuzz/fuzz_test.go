package fuzz

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var _ = Describe("Admission", func() {
	DescribeTable("answers random objects, and applies them whole or not at all",
		func(ctx SpecContext, k kind) {
			f := newFuzzer(k)
			f.prepare(ctx)
			for n := range cases {
				name := fmt.Sprintf("%s/%d", k.name, n)
				if only := os.Getenv(setOnlyCase); only == "" || only == name {
					f.play(ctx, name)
				}
			}
			AddReportEntry("answers by status code", f.answers)
			// A generator that nothing is accepted of, or refused, finds nothing.
			if os.Getenv(setOnlyCase) == "" {
				Expect(f.accepted).To(BeNumerically(">", cases/20), "accepted")
				Expect(f.refused).To(BeNumerically(">", cases/2), "refused")
			}
		},
		entries(),
	)
})

func entries() []TableEntry {
	var list []TableEntry
	for _, k := range kinds {
		list = append(list, Entry("of the kind "+k.name, k))
	}
	return list
}

// fuzzer sends what one kind may be taken for.
type fuzzer struct {
	kind
	schema            schema
	url               string
	answers           map[int]int
	accepted, refused int
}

func newFuzzer(k kind) *fuzzer {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "crd", "bases", "axiom.apitomy.io_"+k.plural+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	Expect(yaml.Unmarshal(data, &crd)).To(Succeed())
	return &fuzzer{
		kind: k, schema: crd.Spec.Versions[0].Schema.OpenAPIV3Schema.child("properties"), answers: map[int]int{},
		url: fmt.Sprintf("/apis/axiom.apitomy.io/v1alpha1/namespaces/%s/%s", namespace, k.plural),
	}
}

// prepare makes the objects that a valid one needs.
func (f *fuzzer) prepare(ctx context.Context) {
	GinkgoHelper()
	for _, other := range kinds {
		for _, wanted := range f.before {
			if other.name == wanted {
				before := newFuzzer(other)
				answer := before.send(ctx, other.name, alice, request{http.MethodPost, before.url, "application/json", encode(before.seed("valid"))})
				Expect(answer.code).To(Or(Equal(http.StatusCreated), Equal(http.StatusConflict)), answer.body)
			}
		}
	}
}

// seed is the valid object of the kind.
func (f *fuzzer) seed(name string) map[string]any {
	GinkgoHelper()
	var spec map[string]any
	Expect(yaml.Unmarshal([]byte(f.valid), &spec)).To(Succeed())
	return f.object(name, spec)
}

func (f *fuzzer) object(name string, spec any) map[string]any {
	return map[string]any{
		"apiVersion": "axiom.apitomy.io/v1alpha1", "kind": f.name, "spec": spec,
		"metadata": map[string]any{"name": strings.ToLower(f.name) + "-" + name, "namespace": namespace},
	}
}

// play sends one object three times over: to create it, to update one that is
// there, and as a status.
func (f *fuzzer) play(ctx context.Context, name string) {
	GinkgoHelper()
	d := newDice(name)
	number := strings.TrimPrefix(name, f.name+"/")
	f.creates(ctx, d, name, "c"+number)
	f.updates(ctx, d, name, "u"+number)
}

// annotations that mean something to admission.
var annotations = []string{
	api.AnnotationBaseRevision, api.AnnotationTurn, api.AnnotationWrite, api.AnnotationEditedBy, api.AnnotationRequestedBy,
	api.AnnotationResolvedBy, api.AnnotationInterruptedBy, api.AnnotationUndoneBy, api.AnnotationActivation,
}

// draw makes an object: one from the schema, or the valid one, changed here and
// there.
func (f *fuzzer) draw(d *dice, name string) map[string]any {
	object := f.seed(name)
	changes := d.IntN(4)
	if d.once(2) {
		object["spec"] = d.value(f.schema.child("spec"), 0)
		changes = d.IntN(2)
	}
	if d.once(5) {
		object["status"] = d.value(f.schema.child("status"), 0)
	}
	if spec, isObject := object["spec"].(map[string]any); isObject {
		for range changes {
			d.mutate(spec)
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	if d.once(6) {
		metadata["annotations"] = map[string]any{pick(d, annotations): d.word()}
	}
	if d.once(15) {
		metadata[pick(d, []string{"labels", "annotations", "finalizers", "ownerReferences", "generation", "name", "uid", "x"})] = d.anything(0)
	}
	if d.once(25) {
		d.mutate(object)
	}
	return object
}

func (f *fuzzer) creates(ctx context.Context, d *dice, name, object string) {
	GinkgoHelper()
	drawn := f.draw(d, object)
	body := encode(drawn)
	if d.once(6) {
		body = d.corrupt(body)
	}
	who := pick(d, []person{alice, alice, controller})
	stored := f.url + "/" + strings.ToLower(f.name) + "-" + object
	answer := f.try(ctx, name, who, request{http.MethodPost, f.url, "application/json", body})
	if isRefused(answer.code) {
		Expect(f.send(ctx, name, alice, request{method: http.MethodGet, url: stored}).code).To(Equal(http.StatusNotFound), f.tell(name, who, "a refused object is there", body))
	}
}

func (f *fuzzer) updates(ctx context.Context, d *dice, name, object string) {
	GinkgoHelper()
	answer := f.send(ctx, name, alice, request{http.MethodPost, f.url, "application/json", encode(f.seed(object))})
	Expect(answer.code).To(Equal(http.StatusCreated), "%s: %s", f.url, answer.body)
	stored := f.url + "/" + strings.ToLower(f.name) + "-" + object
	for _, r := range f.changes(d, stored, object) {
		before := f.send(ctx, name, alice, request{method: http.MethodGet, url: stored})
		who := pick(d, []person{alice, controller})
		if bytes.Contains(r.body, []byte(versionMark)) {
			r.body = bytes.Replace(r.body, []byte(versionMark), []byte(versionOf(before.body)), 1)
		}
		answer := f.try(ctx, name, who, r)
		if !isRefused(answer.code) {
			continue
		}
		after := f.send(ctx, name, alice, request{method: http.MethodGet, url: stored})
		Expect(after.body).To(Equal(before.body), f.tell(name, who, r.method+" "+r.url+" was refused and changed the object", r.body))
	}
}

// versionMark stands for the version of the object that is updated.
const versionMark = "@version@"

func versionOf(body string) string {
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.Unmarshal([]byte(body), &object)
	return object.Metadata.ResourceVersion
}

// changes are the requests for one object that is there.
func (f *fuzzer) changes(d *dice, stored, name string) []request {
	drawn := f.draw(d, name)
	if metadata, isObject := drawn["metadata"].(map[string]any); isObject {
		metadata["resourceVersion"] = versionMark
	}
	put := request{http.MethodPut, stored, "application/json", encode(drawn)}
	if d.once(6) {
		put.body = d.corrupt(put.body)
	}
	// The API server itself takes minutes to merge what is a thousand levels deep,
	// before anybody is asked for admission.
	d.deepest = 200
	patched := map[string]any{"spec": d.value(f.schema.child("spec"), 0)}
	d.mutate(patched)
	requests := []request{put, {http.MethodPatch, stored, "application/merge-patch+json", encode(patched)}, f.operations(d, stored)}
	if !f.hasStatus {
		return requests
	}
	status := map[string]any{"status": d.value(f.schema.child("status"), 0)}
	d.mutate(status)
	return append(requests, request{http.MethodPatch, stored + "/status", "application/merge-patch+json", encode(status)})
}

// operations is a JSON patch.
func (f *fuzzer) operations(d *dice, stored string) request {
	var list []any
	for range 1 + d.IntN(3) {
		list = append(list, map[string]any{
			"op":    pick(d, []string{"add", "replace", "remove", "test", "move", "copy", "sing"}),
			"path":  pick(d, []string{"/spec", "/spec/x", "/metadata/name", "/spec/workflow/nodes/0", "/spec/workflow/nodes/-", "", "/kind", "/spec/inputs", "~2"}),
			"from":  "/spec",
			"value": d.anything(1),
		})
	}
	data, _ := json.Marshal(list)
	return request{http.MethodPatch, stored, "application/json-patch+json", data}
}

type request struct {
	method, url, contentType string
	body                     []byte
}

type answer struct {
	code int
	body string
}

// try sends what may be refused but must be answered.
func (f *fuzzer) try(ctx context.Context, name string, who person, r request) answer {
	GinkgoHelper()
	got := f.send(ctx, name, who, r)
	f.answers[got.code]++
	if isRefused(got.code) {
		f.refused++
	} else {
		f.accepted++
	}
	Expect(got.code).To(BeNumerically("<", http.StatusInternalServerError),
		f.tell(name, who, r.method+" "+r.url+" was answered with "+got.body, r.body))
	return got
}

func (f *fuzzer) send(ctx context.Context, name string, who person, r request) answer {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, r.method, who.host+r.url, bytes.NewReader(r.body))
	Expect(err).NotTo(HaveOccurred())
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	got, err := who.http.Do(req)
	Expect(err).NotTo(HaveOccurred(), f.tell(name, who, r.method+" "+r.url+" was not answered in time", r.body))
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{code: got.StatusCode, body: string(body)}
}

// tell says what a failure takes to be seen again.
func (f *fuzzer) tell(name string, who person, what string, body []byte) func() string {
	return func() string {
		file := filepath.Join(os.TempDir(), fmt.Sprintf("axiom-fuzz-%d-%s.json", seed, strings.ReplaceAll(name, "/", "-")))
		if err := os.WriteFile(file, body, 0o600); err != nil {
			file = err.Error()
		}
		const shown = 4000
		return fmt.Sprintf("%s, as %s\ncase: %s=%d %s=%s\nbody: %s\nwhole body in %s",
			what[:min(len(what), shown)], who.name, setSeed, seed, setOnlyCase, name, body[:min(len(body), shown)], file)
	}
}

func isRefused(code int) bool { return code >= http.StatusMultipleChoices }

func encode(object map[string]any) []byte {
	data, err := json.Marshal(object)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}
