package crash

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Words that stand for what differs from play to play.
const (
	wordUID       = "<uid>"
	wordTime      = "<time>"
	wordHex       = "<hex>"
	wordNamespace = "<namespace>"
)

var (
	uidText  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timeText = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	// hexText is long enough to be made from a digest and not from a word.
	hexText = regexp.MustCompile(`[0-9a-f]{10,}`)
)

// normalForm turns objects into JSON trees that are equal if the objects are
// equal in what counts. They are sorted, since a list's order is its names'.
func normalForm(objects []client.Object, namespace string, also func(map[string]any)) ([]any, error) {
	trees := make([]any, 0, len(objects))
	texts := map[string]any{}
	var keys []string
	for _, object := range objects {
		data, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", object.GetName(), err)
		}
		var tree map[string]any
		if err := json.Unmarshal(data, &tree); err != nil {
			return nil, fmt.Errorf("decode %s: %w", object.GetName(), err)
		}
		tree["type"] = fmt.Sprintf("%T", object)
		forget(tree)
		if also != nil {
			also(tree)
		}
		normal := words(tree, namespace)
		text, err := json.Marshal(normal)
		if err != nil {
			return nil, fmt.Errorf("encode normal form of %s: %w", object.GetName(), err)
		}
		// Two objects may have the same normal form.
		key := fmt.Sprintf("%s %d", text, len(keys))
		texts[key] = normal
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		trees = append(trees, texts[key])
	}
	return trees, nil
}

// forget removes what only the API server's bookkeeping has.
func forget(tree map[string]any) {
	if meta, ok := tree["metadata"].(map[string]any); ok {
		for _, member := range []string{"resourceVersion", "managedFields", "selfLink"} {
			delete(meta, member)
		}
	}
}

func words(v any, namespace string) any {
	switch v := v.(type) {
	case string:
		return word(v, namespace)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = words(v[i], namespace)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			object[word(name, namespace)] = words(member, namespace)
		}
		return object
	}
	return v
}

func word(text, namespace string) string {
	if namespace != "" {
		text = strings.ReplaceAll(text, namespace, wordNamespace)
	}
	text = uidText.ReplaceAllString(text, wordUID)
	text = timeText.ReplaceAllString(text, wordTime)
	return hexText.ReplaceAllString(text, wordHex)
}
