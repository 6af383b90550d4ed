package expression
import ("testing";"time";"strings";"runtime")
func TestZZ(t *testing.T) {
	c := NewCache()
	for name, text := range map[string]string{
		"sum": strings.TrimSuffix(strings.Repeat("1+", 50000), "+"),
		"sum8k": strings.TrimSuffix(strings.Repeat("1+", 4000), "+"),
		"list": "["+strings.Repeat("1,", 49000)+"1]",
		"parens": strings.Repeat("(", 99000),
		"parens1k": strings.Repeat("(", 1000),
		"maps20": strings.Repeat("[1].map(x,", 20)+"x"+strings.Repeat(")", 20),
"maps30": strings.Repeat("[1].map(x,", 30)+"x"+strings.Repeat(")", 30),
"maps40": strings.Repeat("[1].map(x,", 40)+"x"+strings.Repeat(")", 40),
"maps50": strings.Repeat("[1].map(x,", 50)+"x"+strings.Repeat(")", 50),
"nestlists40": strings.Repeat("[", 40)+strings.Repeat("]", 40),
"nestlists60": strings.Repeat("[", 60)+strings.Repeat("]", 60),
"parens40": strings.Repeat("(", 40)+"1"+strings.Repeat(")", 40),
"parens60": strings.Repeat("(", 60)+"1"+strings.Repeat(")", 60),
"list16": "["+strings.Repeat("1,", 8000)+"1]",
"maplist": "["+strings.Repeat("[1].map(x,x),", 70)+"1]",
"mapchain": "[1]"+strings.Repeat(".map(x,[x])", 90),
"mapchain2": "[1]"+strings.Repeat(".map(x,[[x]])", 75),
"mapchain3": "[1]"+strings.Repeat(".map(x,[[[[x]]]])", 58),
"mapchain4": "[1]"+strings.Repeat(".map(x,[[[[[[[[x]]]]]]]])", 40),
"mapmap": "[1]"+strings.Repeat(".map(x,{'a':{'a':x}})", 47),
"quotes": strings.Repeat("'", 99000),
		"junk": strings.Repeat("a b ", 20000),
		"junk1k": strings.Repeat("a b ", 250),
		"brackets": strings.Repeat("[{", 500),
		"ternary": strings.Repeat("a?b:", 200)+"c",
		"dots": "context"+strings.Repeat(".a", 40000),
		"maps": strings.Repeat("[1].map(x,", 90)+"x"+strings.Repeat(")", 90),
		"toolong": strings.Repeat("1", 200000),
		"and": strings.TrimSuffix(strings.Repeat("true&&", 15000),"&&"),
		"sort": "context.l"+strings.Repeat(".sortBy(x,x)", 80),
		"sortnest": strings.Repeat("[1].sortBy(x,", 70)+"x"+strings.Repeat(")", 70),
		"optnest": strings.Repeat("optional.of(1).optMap(x,", 40)+"x"+strings.Repeat(")", 40),
		"optchain": "optional.of(1)"+strings.Repeat(".optMap(x,x)", 80),
		"nestlists": strings.Repeat("[", 120)+strings.Repeat("]", 120),
	} {
		var b, a runtime.MemStats
		runtime.ReadMemStats(&b)
		s := time.Now()
		_, err := c.Compile(ScopeActionInput, text)
		d := time.Since(s)
		runtime.ReadMemStats(&a)
		e := ""
		if err != nil { e = err.Error(); e = e[max(0,len(e)-100):] }
		t.Logf("%-10s %6d bytes %8v %6d MiB %s", name, len(text), d.Round(time.Millisecond), (a.TotalAlloc-b.TotalAlloc)>>20, e)
	}
}
