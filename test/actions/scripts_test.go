package actions

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// script is the work's action type with a script of its own.
func script(interpreter, text string) string {
	GinkgoHelper()
	var types []map[string]any
	Expect(yaml.Unmarshal([]byte(work), &types)).To(Succeed())
	types[0]["script"] = map[string]any{"interpreter": interpreter, "scriptTemplate": text}
	types[0]["outputs"] = []any{}
	out, err := yaml.Marshal(types)
	Expect(err).NotTo(HaveOccurred())
	return string(out)
}

var _ = Describe("A script", func() {
	DescribeTable("gets its inputs and leaves its outputs, in",
		func(ctx SpecContext, interpreter, text string) {
			w := newLivelyWorld(ctx)
			w.settles()
			w.operate()
			w.grants()
			w.compose("job", once, script(interpreter, text))
			run := w.run("job-1", "job", inputs(`{"ref":"it's \"r\" & <$(id)>\n"}`))
			w.reaches(run, api.RunCompleted)
			Expect(outputOf(run, "work#1")).To(MatchJSON(`{"file":"it's \"r\" & <$(id)>\n","variable":"it's \"r\" & <$(id)>\n","score":9007199254740993,"password":"[redacted]"}`))
			w.leavesNothing(run)
		},
		Entry("bash", "bash", `
ref=$(cat "$AXIOM_INPUTS" | sed -e 's/^{"ref"://' -e 's/}$//')
variable=$(printf '%s.' "$AXIOM_INPUT_ref" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk 'NR>1{printf "\\n"} {printf "%s",$0}')
printf '{"file": %s, "variable": "%s", "score": 9007199254740993, "password": "%s"}' "$ref" "${variable%.}" "$DB_PASSWORD" > "$AXIOM_OUTPUTS"
`),
		Entry("python", "python", `
import json, os
with open(os.environ["AXIOM_INPUTS"]) as f:
    ref = json.load(f)["ref"]
with open(os.environ["AXIOM_OUTPUTS"], "w") as f:
    json.dump({"file": ref, "variable": os.environ["AXIOM_INPUT_ref"], "score": 9007199254740993, "password": os.environ["DB_PASSWORD"]}, f)
`),
		Entry("node", "node", `
const fs = require('fs');
const ref = JSON.parse(fs.readFileSync(process.env.AXIOM_INPUTS)).ref;
const rest = JSON.stringify({file: ref, variable: process.env.AXIOM_INPUT_ref, password: process.env.DB_PASSWORD});
fs.writeFileSync(process.env.AXIOM_OUTPUTS, rest.replace(/}$/, ',"score":9007199254740993}'));
`),
	)

	DescribeTable("fails in its own words:",
		func(ctx SpecContext, text, code, message string) {
			w := newLivelyWorld(ctx)
			w.settles()
			w.operate()
			w.grants()
			w.compose("job", once, script("bash", text))
			run := w.run("job-1", "job", inputs(`{"ref":"r"}`))
			w.reaches(run, api.RunCompleted)
			Expect(failureOf(run, "work#1").Code).To(Equal(code))
			Expect(failureOf(run, "work#1").Message).To(Equal(message))
			w.leavesNothing(run)
		},
		Entry("an exit code", "exit 7", "EXIT_CODE", "the script ended with exit code 7"),
		Entry("a signal", "kill -SEGV $$", "EXIT_CODE", "the script ended with exit code 139 (SIGSEGV)"),
		Entry("no object", "echo 7 > $AXIOM_OUTPUTS", "INVALID_RESULT", "the outputs are no JSON object"),
		Entry("too much", "head -c 300000 /dev/zero | tr '\\0' x > $AXIOM_OUTPUTS", "RESULT_TOO_LARGE", "the outputs are larger than 262144 bytes"),
		Entry("more than a context holds", `printf '{"a":"' > $AXIOM_OUTPUTS; head -c 262130 /dev/zero | tr '\0' x >> $AXIOM_OUTPUTS; printf '"}' >> $AXIOM_OUTPUTS`,
			"CONTEXT_TOO_LARGE", "the context would have 262148 bytes, the limit is 262144"),
	)

	It("is not touched by anything in its text that looks like a placeholder", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.grants()
		w.compose("job", once, script("bash", `printf '%s' '{"text": "${{ context.ref }} $(HOME) {{ref}}"}' > $AXIOM_OUTPUTS`))
		run := w.run("job-1", "job", inputs(`{"ref":"r"}`))
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "work#1")).To(MatchJSON(`{"text":"${{ context.ref }} $(HOME) {{ref}}"}`))
	})

	It("is killed with its attempt, and what it would have said counts for nothing", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.grants()
		w.compose("job", strings.Replace(once, "    retry:", "    timeout: PT2S\n    retry:", 1), script("bash", "sleep 3600"))
		run := w.run("job-1", "job", inputs(`{"ref":"r"}`))
		w.reaches(run, api.RunCompleted)
		Expect(failureOf(run, "work#1").Code).To(Equal("ATTEMPT_TIMEOUT"))
		w.leavesNothing(run)
	})

	It("is tried again on another pod when its own is lost", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		node := w.settles()
		w.operate()
		w.grants()
		flag := GinkgoT().TempDir() + "/flag"
		w.compose("job", strings.Replace(job, "PT1M", "PT1S", 1), script("bash", fmt.Sprintf("test -e %s || { touch %s; sleep 3600; }; echo '{\"score\": 3}' > $AXIOM_OUTPUTS", flag, flag)))
		run, pod := w.run("job-1", "job", inputs(`{"ref":"r"}`)), &corev1.Pod{}
		w.opens(run, "work#1", 1, pod)
		Eventually(flag).Should(BeAnExistingFile())
		Expect(node.Kill(pod.Name)).To(BeTrue())
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "work#1")).To(MatchJSON(`{"score":3}`))
		Expect(run.Status.History.Entries[1].Attempts).To(Equal(int32(2)))
		w.leavesNothing(run)
	})
})
