package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"syscall"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/runner/redact"
)

// MaxOutputs bounds the file of the outputs, in bytes.
const MaxOutputs = 256 << 10

// Codes of outputs that are no result.
const (
	CodeInvalidResult  = "INVALID_RESULT"
	CodeResultTooLarge = "RESULT_TOO_LARGE"
)

// errNoFile means that outputs were left in something other than a file.
var errNoFile = errors.New("it is no regular file")

// readOutputs makes the result of a script that ended well. Outputs without
// secrets stay as they were written, to the byte.
func readOutputs(path string, secrets *redact.Redactor) openapi.AttemptResult {
	text, err := readFile(path)
	if err != nil {
		return failed(0, CodeInvalidResult, fmt.Sprintf("the outputs cannot be read: %s", err))
	}
	if len(text) > MaxOutputs {
		return failed(0, CodeResultTooLarge, fmt.Sprintf("the outputs are larger than %d bytes", MaxOutputs))
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return openapi.AttemptResult{Outputs: []byte("{}")}
	}
	tree, err := jsonvalue.Decode(text)
	if err != nil {
		return failed(0, CodeInvalidResult, fmt.Sprintf("the outputs are no JSON: %s", err))
	}
	if _, ok := tree.(map[string]any); !ok {
		return failed(0, CodeInvalidResult, "the outputs are no JSON object")
	}
	if clean := secrets.Value(tree); !reflect.DeepEqual(tree, clean) {
		if text, err = encode(clean); err != nil {
			return failed(0, CodeInvalidResult, fmt.Sprintf("the outputs cannot be cleaned of secrets: %s", err))
		}
	}
	return openapi.AttemptResult{Outputs: text}
}

// encode writes a JSON tree. It is not canonical JSON, which would round large
// integers.
func encode(tree any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// readFile returns the text of a regular file, up to one byte more than
// outputs may have; nothing for a file that is not there. A script may leave
// anything under that name, and reading from a pipe would wait for ever.
func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()

	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	return io.ReadAll(io.LimitReader(file, MaxOutputs+1))
}
