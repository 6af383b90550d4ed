package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	// resultKey of the ConfigMap that keeps the result of an attempt.
	resultKey = "result.json"

	maxErrorCode    = 64
	maxErrorMessage = 4096
)

// PostAttemptResult keeps the result of an action attempt, once and for good.
func (s *Server) PostAttemptResult(
	ctx context.Context, request server.PostAttemptResultRequestObject,
) (server.PostAttemptResultResponseObject, error) {
	result, err := readAttemptResult(request.Body)
	if err != nil {
		return nil, err
	}
	kept, err := resultObject(callerOf(ctx).pod, result)
	if err != nil {
		return nil, err
	}
	err = s.live.Create(ctx, kept)
	if apierrors.IsAlreadyExists(err) {
		return server.PostAttemptResult204Response{}, s.compareResult(ctx, kept)
	}
	if err != nil {
		return nil, fmt.Errorf("keep attempt result: %w", err)
	}
	return server.PostAttemptResult204Response{}, nil
}

// readAttemptResult returns the result in canonical form, so that equal results
// have equal texts.
func readAttemptResult(body *openapi.AttemptResult) (string, error) {
	result := map[string]any{"exitCode": int64(body.ExitCode)}
	if len(body.Outputs) > 0 && string(body.Outputs) != "null" {
		outputs, err := jsonvalue.Decode(body.Outputs)
		if _, isObject := outputs.(map[string]any); err != nil || !isObject {
			return "", invalid("outputs must be an object")
		}
		result["outputs"] = outputs
	}
	if failure := body.Error; failure != nil {
		if failure.Code == "" || utf8.RuneCountInString(failure.Code) > maxErrorCode {
			return "", invalid("error.code must have 1 to %d characters", maxErrorCode)
		}
		result["error"] = map[string]any{"code": failure.Code, "message": cut(failure.Message, maxErrorMessage)}
	}
	text, err := json.Marshal(result)
	if err != nil {
		return "", fmt.Errorf("encode attempt result: %w", err)
	}
	return string(text), nil
}

// resultObject is what keeps the result: an object of the pod's name that
// belongs to the pod's run, and so outlives the pod.
func resultObject(pod *corev1.Pod, result string) (*corev1.ConfigMap, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil, conflict("Pod %s belongs to no run", pod.Name)
	}
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:            pod.Name,
			Namespace:       pod.Namespace,
			Labels:          map[string]string{api.LabelRun: pod.Labels[api.LabelRun]},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Immutable: &immutable,
		Data:      map[string]string{resultKey: result},
	}, nil
}

// compareResult tells whether the result that is kept already is the same.
func (s *Server) compareResult(ctx context.Context, posted *corev1.ConfigMap) error {
	kept := &corev1.ConfigMap{}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(posted), kept); err != nil {
		return fmt.Errorf("read attempt result: %w", err)
	}
	owner, run := metav1.GetControllerOf(kept), metav1.GetControllerOf(posted)
	if owner == nil || owner.UID != run.UID || kept.Data[resultKey] != posted.Data[resultKey] {
		return conflict("The attempt already has another result")
	}
	return nil
}
