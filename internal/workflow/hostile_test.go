package workflow

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// filled is a document of almost the greatest size. Its one action has the inputs that entry makes of their numbers.
func filled(entry func(i int) string) Document {
	inputs := map[string]any{}
	doc := Document{
		"id": "w", "name": "W",
		"nodes": []any{
			map[string]any{"id": "s", "type": "start", "name": "S", "config": map[string]any{"inputs": []any{}}},
			map[string]any{"id": "a", "type": "action", "name": "A", "config": map[string]any{"actionType": "a", "inputs": inputs, "outputs": []any{}}},
			map[string]any{"id": "e", "type": "end", "name": "E"},
		},
		"edges": []any{
			map[string]any{"id": "sa", "source": "s", "target": "a"}, map[string]any{"id": "ae", "source": "a", "target": "e"},
		},
	}
	size := jsonvalue.Size(doc)
	for i := 0; ; i++ {
		name, text := fmt.Sprintf("%x", i), entry(i)
		size += jsonvalue.Size(name) + jsonvalue.Size(text) + len(":,")
		if size > MaxDocumentBytes {
			return doc
		}
		inputs[name] = text
	}
}

// filledWith repeats a unit in expressions of almost the greatest length, each with another number.
func filledWith(before, unit, after string) Document {
	const length = 16_000
	return filled(func(i int) string {
		return fmt.Sprintf("%s%s%d%s", before, strings.Repeat(unit, length/len(unit)), i, after)
	})
}

// hostileExpressions are documents within every other limit whose expressions are as much work as they can be.
func hostileExpressions() map[string]Document {
	return map[string]Document{
		"short constants":      filled(func(i int) string { return fmt.Sprintf("%x", 0x10000+i)[1:] + "u" }),
		"short sums":           filled(func(i int) string { return fmt.Sprintf("%d+%d", i%100, i/100) }),
		"unknown names":        filled(func(i int) string { return fmt.Sprintf("n%x", i) }),
		"syntax errors":        filled(func(i int) string { return fmt.Sprintf("%x )(", i) }),
		"comparisons":          filled(func(i int) string { return fmt.Sprintf("context.a==%d", i) }),
		"long sums of lists":   filledWith("[", "[]+[],", "]"),
		"long lists":           filledWith("[", "[],", "]"),
		"long lists of maps":   filledWith("[", "[].map(x,x),", "]"),
		"long lists of sorts":  filledWith("[", "[1].sortBy(x,x),", "]"),
		"long lists of texts":  filledWith("[", "'',", "]"),
		"long maps":            filledWith("{1:", "1,1:", "}"),
		"long chains of sorts": filled(func(i int) string { return fmt.Sprintf("[%d]", i) + strings.Repeat(".sortBy(x,x)", 30) }),
		"long conjunctions":    filledWith("", "1<2&&", "==1"),
		"text beyond ASCII":    filledWith("'", "é", "'"),
		"long wrong formats":   filledWith("'", "a", "'.format([1])"),
		"too long":             filled(func(i int) string { return strconv.Itoa(i) + strings.Repeat("+1", 20_000) }),
	}
}

// Those that take the whole of the limit in as many, and in as few, expressions as possible.
func TestHostileExpressionsAreBounded(t *testing.T) {
	for _, name := range []string{"short sums", "long lists of sorts", "text beyond ASCII"} {
		t.Run(name, func(t *testing.T) {
			const maxAllocated = 512 << 20
			x := &meter{ExpressionChecker: newExpressions()}
			var problems []Problem
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			problems = Validate(hostileExpressions()[name], x)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxAllocated {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
			// The last expression may go beyond the limit.
			if x.effort > MaxExpressionEffort+x.largest {
				t.Errorf("an effort of %d was spent", x.effort)
			}
			if refused := slices.ContainsFunc(problems, isEffort); refused != (x.effort > MaxExpressionEffort) {
				t.Errorf("an effort of %d, refused: %t", x.effort, refused)
			}
		})
	}
}

func isEffort(p Problem) bool { return strings.Contains(p.Message, "too much for one workflow") }

// A meter counts what is spent.
type meter struct {
	ExpressionChecker
	effort, largest, checks int
}

func (m *meter) CheckEffort(scope, text string) (resultType string, effort int, err error) {
	resultType, effort, err = m.ExpressionChecker.(EffortChecker).CheckEffort(scope, text)
	m.checks++
	m.effort += effort
	m.largest = max(m.largest, effort)
	return resultType, effort, err
}

// A price is what every expression costs.
type price int

func (p price) Check(string, string) (string, error) { return "bool", nil }

func (p price) CheckEffort(string, string) (resultType string, effort int, err error) {
	return "bool", int(p), nil
}

// Expressions are checked once and in order; the same text in another scope is another expression.
func TestEffortLimit(t *testing.T) {
	const each = MaxExpressionEffort / 4
	texts := []string{"a", "b", "a", "c", "b", "d", "e", "a", "f", "e"}
	inputs := map[string]any{}
	for i, text := range texts {
		inputs[fmt.Sprintf("i%02d", i)] = text
	}
	doc := parse(t, task("outputs: []")).(map[string]any)
	node := list(doc["nodes"])[1].(map[string]any)["config"].(map[string]any)
	node["inputs"] = inputs
	for cost, want := range map[int]string{
		each:          "i08 ", // five of them are just over the limit
		each + 1:      "i06 i08 i09 ",
		4 * each:      "i03 i05 i06 i08 i09 ",
		4*each + 1:    "i01 i03 i04 i05 i06 i08 i09 ",
		each / 2:      "",
		math.MaxInt32: "i01 i03 i04 i05 i06 i08 i09 ",
	} {
		var refused strings.Builder
		x := &meter{ExpressionChecker: price(cost)}
		for _, p := range Validate(doc, x) {
			if !isEffort(p) || p.Code != "INVALID_INPUT_EXPRESSION" || !p.IsError() {
				t.Errorf("problem %+v", p)
			}
			_, name, _ := strings.Cut(p.Message, `input "`)
			refused.WriteString(name[:3] + " ")
		}
		if refused.String() != want || x.effort > MaxExpressionEffort+cost {
			t.Errorf("at %d each, an effort of %d was spent and %q is refused, want %q", cost, x.effort, refused.String(), want)
		}
	}
	node["title"] = "a"
	x := &meter{ExpressionChecker: price(1)}
	if problems := Validate(doc, x); len(problems) > 0 || x.checks != 7 {
		t.Errorf("%d checks, problems %v", x.checks, problems)
	}
}

// Documents at the limits of nodes, edges and bytes, whose expressions all differ and are such as people write, are far
// from that of their effort.
func TestExpressionsOfPeopleAreNoEffort(t *testing.T) {
	doc := Document{"id": "w", "name": "W"}
	var nodes, edges []any
	for i := range MaxNodes {
		config := map[string]any{"actionType": "a", "outputs": []any{}, "inputs": map[string]any{
			"ref": fmt.Sprintf("context.ref%d", i), "text": fmt.Sprintf("'No reply on ' + context.ref%d", i), "n": fmt.Sprintf("context.n%d + 1", i),
		}}
		nodes = append(nodes, map[string]any{"id": fmt.Sprint("n", i), "type": "action", "name": "N", "config": config})
	}
	for i := range MaxEdges {
		edges = append(edges, map[string]any{
			"id": fmt.Sprint("e", i), "source": fmt.Sprint("n", i%MaxNodes), "target": fmt.Sprint("n", (i*7+1)%MaxNodes),
			"condition": fmt.Sprintf("context.n%d > %d", i%MaxNodes, i),
		})
	}
	doc["nodes"], doc["edges"] = nodes, edges
	if size := jsonvalue.Size(doc); size < MaxDocumentBytes*9/10 || size > MaxDocumentBytes {
		t.Fatalf("document of %d bytes", size)
	}
	x := &meter{ExpressionChecker: newExpressions()}
	for _, p := range Validate(doc, x) {
		if isEffort(p) || strings.Contains(p.Code, "EXPRESSION") || strings.Contains(p.Code, "CONDITION") && p.IsError() {
			t.Fatalf("problem: %v", p)
		}
	}
	if x.effort > MaxExpressionEffort*4/5 {
		t.Errorf("effort %d", x.effort)
	}
}

// listOf repeats an entry up to a length in bytes.
func listOf(entry string, length int) string {
	return strings.TrimSuffix(strings.Repeat(entry+",", length/(len(entry)+1)), ",")
}

// hostileTexts are documents as somebody would send them, with the code of the first problem, or the error of who
// decodes them.
func hostileTexts() map[string]struct{ text, want string } {
	const almost = MaxDocumentBytes - 1000
	deep := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	document := func(members string) string { return `{"id":"w","name":"W",` + members + `}` }
	node := func(kind, config string) string {
		return document(`"nodes":[{"id":"a","name":"A","type":"` + kind + `","config":{` + config + `}}]`)
	}
	schema := func(entry string) string {
		nodes := `{"id":"a","name":"A","type":"human-task","config":{"description":"d","responseSchema":{"allOf":[` + listOf(entry, 60<<10) + `]}}}`
		return document(`"nodes":[` + listOf(nodes, almost) + `]`)
	}
	return map[string]struct{ text, want string }{
		"5 MiB of nodes":                    {document(`"nodes":[` + listOf(`{"id":"node","name":"`+strings.Repeat("x", 100)+`"}`, 5<<20) + `]`), "WORKFLOW_TOO_LARGE"},
		"5 MiB of empty nodes":              {document(`"nodes":[` + listOf(`{}`, 5<<20) + `]`), "value has too many parts"},
		"a name of 5 MiB":                   {`{"id":"w","name":"` + strings.Repeat("x", 5<<20) + `"}`, "WORKFLOW_TOO_LARGE"},
		"a condition of 5 MiB":              {document(`"edges":[{"condition":"` + strings.Repeat("1+", 5<<19) + `1"}]`), "WORKFLOW_TOO_LARGE"},
		"nested 10,001 deep":                {document(`"x":` + deep(10_000)), "value is nested too deep"},
		"nested 10,000 deep":                {document(`"x":` + deep(9_999)), "EMPTY_WORKFLOW"},
		"a node nested 10,000 deep":         {document(`"nodes":[` + deep(9_998) + `]`), "INVALID_NODE"},
		"a config nested 10,000 deep":       {node("end", `"x":`+deep(9_996)), "NO_START_NODE"},
		"an input nested 10,000 deep":       {node("action", `"inputs":{"a":`+deep(9_995)+`}`), "NO_START_NODE"},
		"a schema nested 1,000 deep":        {node("human-task", `"responseSchema":`+strings.Repeat(`{"not":`, 1000)+"{}"+strings.Repeat("}", 1000)), "NO_START_NODE"},
		"text that is no UTF-8":             {document("\"x\":\"\xff\""), "text is not valid Unicode"},
		"a lone surrogate":                  {document(`"x":"\ud800"`), "text is not valid Unicode"},
		"a member twice":                    {`{"id":1,"name":"W","id":"w","edges":7,"edges":[]}`, "EMPTY_WORKFLOW"}, // the last one counts
		"a version beyond int64":            {document(`"version":9223372036854775808`), "INVALID_WORKFLOW_VERSION"},
		"the greatest version":              {document(`"version":9223372036854775807`), "EMPTY_WORKFLOW"},
		"a number beyond the doubles":       {document(`"version":1e400`), "number is not a finite double"},
		"a priority beyond int64":           {document(`"edges":[{"id":"e","source":"a","target":"b","priority":9223372036854775808}]`), "INVALID_EDGE_FIELD"},
		"attempts beyond int64":             {node("action", `"retry":{"maxAttempts":1e300}`), "NO_START_NODE"},
		"a duration of 500 KiB":             {node("wait", `"duration":"`+strings.Repeat("P", almost)+`"`), "NO_START_NODE"},
		"an id of 500 KiB":                  {document(`"nodes":[{"id":"` + strings.Repeat(`\u0000`, almost/6) + `"}]`), "INVALID_NODE_TYPE"},
		"500 KiB of null inputs":            {node("action", `"inputs":{`+manyMembers("null", almost)+`}`), "NO_START_NODE"},
		"500 KiB of one output":             {node("action", `"outputs":[`+listOf(`{"name":"a"}`, almost)+`]`), "NO_START_NODE"},
		"500 KiB of outputs of wrong types": {node("action", `"outputs":[`+listOf(`1`, almost)+`]`), "INVALID_OUTPUT_DEFINITION"},
		"500 KiB of options":                {node("human-task", `"outputs":[{"name":"a","options":[`+listOf(`1`, almost)+`]}]`), "MALFORMED_OUTPUT_OPTION"},
		"500 KiB of broken matches":         {node("receive-event", `"eventType":"t","match":[`+listOf(`"("`, almost)+`]`), "NO_START_NODE"},
		"patterns of many states":           {schema(`{"pattern":"a{999}"}`), "NO_START_NODE"},
		"patterns of many classes":          {schema(`{"pattern":"(?i)[^\\pL]"}`), "NO_START_NODE"},
		"references in circles":             {schema(`{"$ref":"#/allOf/0"}`), "NO_START_NODE"},
		"long references":                   {schema(`{"$ref":"#` + strings.Repeat("/allOf/0", 100) + `"}`), "NO_START_NODE"},
		"1,000 nodes of one id":             {document(`"nodes":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a","type":"end"},`, MaxNodes), ",") + `]`), "NO_START_NODE"},
		"a circle of 1,000 nodes":           {circle(MaxNodes), "NO_PATH_TO_END"},
		"4,000 edges of one node to itself": {
			document(`"nodes":[{"id":"a","type":"action"}],"edges":[` + strings.TrimSuffix(strings.Repeat(`{"id":"e","source":"a","target":"a"},`, MaxEdges), ",") + `]`), "NO_START_NODE",
		},
	}
}

func manyMembers(value string, length int) string {
	var b strings.Builder
	for i := 0; b.Len() < length-20; i++ {
		fmt.Fprintf(&b, `"%x":%s,`, i, value)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// circle is a start and an end beside actions that lead in a circle.
func circle(n int) string {
	nodes := []string{`{"id":"s","name":"S","type":"start","config":{"inputs":[]}}`, `{"id":"e","name":"E","type":"end"}`}
	edges := []string{`{"id":"se","source":"s","target":"e","isDefault":true}`, `{"id":"s0","source":"s","target":"n0","condition":"true"}`}
	n -= len(nodes)
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","name":"N","type":"action","config":{"actionType":"a","inputs":{},"outputs":[]}}`, i))
		edges = append(edges, fmt.Sprintf(`{"id":"e%d","source":"n%d","target":"n%d"}`, i, i, (i+1)%n))
	}
	return `{"id":"w","name":"W","nodes":[` + strings.Join(nodes, ",") + `],"edges":[` + strings.Join(edges, ",") + `]}`
}

func TestHostileTextsAreBounded(t *testing.T) {
	const maxAllocated = 512 << 20 // in all, of which little is held at a time
	for name, tc := range hostileTexts() {
		t.Run(name, func(t *testing.T) {
			x := newExpressions()
			data := []byte(tc.text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			doc, err := jsonvalue.Decode(data)
			var problems []Problem
			if err == nil {
				problems = Validate(doc, x)
			}
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxAllocated {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
			switch {
			case err != nil:
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %s", err, tc.want)
				}
			case len(problems) == 0 || problems[0].Code != tc.want:
				t.Errorf("problems begin with %.300v, want %s", fmt.Sprint(problems), tc.want)
			}
			for _, p := range problems {
				if len(p.Message) > 4096 {
					t.Fatalf("a message of %d bytes: %.200s", len(p.Message), p.Message)
				}
			}
		})
	}
}
