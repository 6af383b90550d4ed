package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
)

// Of Secrets only metadata is ever asked for: the values do not leave the API
// server.
//
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=actiontypes;tools,verbs=get;list;watch

var secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// ListLibrary tells what the caller's namespace offers.
func (s *Server) ListLibrary(ctx context.Context, request server.ListLibraryRequestObject) (server.ListLibraryResponseObject, error) {
	var entries []openapi.LibraryEntry
	var err error
	switch namespace := client.InNamespace(callerOf(ctx).namespace); request.Kind {
	case openapi.LibraryKindActionTypes:
		entries, err = s.actionTypes(ctx, namespace)
	case openapi.LibraryKindTools:
		entries, err = s.tools(ctx, namespace)
	case openapi.LibraryKindSecrets:
		entries, err = s.secrets(ctx, namespace)
	default:
		return nil, noLibrary()
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b openapi.LibraryEntry) int { return cmp.Compare(a.Name, b.Name) })
	return server.ListLibrary200JSONResponse{Items: entries}, nil
}

func noLibrary() error {
	return invalid("Unknown part of the library; use action-types, tools or secrets")
}

func (s *Server) actionTypes(ctx context.Context, namespace client.ListOption) ([]openapi.LibraryEntry, error) {
	list := &api.ActionTypeList{}
	if err := s.live.List(ctx, list, namespace); err != nil {
		return nil, fmt.Errorf("list action types: %w", err)
	}
	entries := make([]openapi.LibraryEntry, 0, len(list.Items))
	for i := range list.Items {
		entries = append(entries, openapi.LibraryEntry{Name: list.Items[i].Name, Description: list.Items[i].Spec.Description})
	}
	return entries, nil
}

func (s *Server) tools(ctx context.Context, namespace client.ListOption) ([]openapi.LibraryEntry, error) {
	list := &api.ToolList{}
	if err := s.live.List(ctx, list, namespace); err != nil {
		return nil, fmt.Errorf("list tools: %w", err)
	}
	entries := make([]openapi.LibraryEntry, 0, len(list.Items))
	for i := range list.Items {
		entries = append(entries, openapi.LibraryEntry{Name: list.Items[i].Name, Description: list.Items[i].Spec.Description})
	}
	return entries, nil
}

// secrets are those that agents and scripts may refer to.
func (s *Server) secrets(ctx context.Context, namespace client.ListOption) ([]openapi.LibraryEntry, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(secretKind.GroupVersion().WithKind("SecretList"))
	if err := s.live.List(ctx, list, namespace, client.MatchingLabels{api.LabelCredential: "true"}); err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	entries := make([]openapi.LibraryEntry, 0, len(list.Items))
	for i := range list.Items {
		entries = append(entries, openapi.LibraryEntry{Name: list.Items[i].Name})
	}
	return entries, nil
}

// GetLibrary tells of one library object.
func (s *Server) GetLibrary(ctx context.Context, request server.GetLibraryRequestObject) (server.GetLibraryResponseObject, error) {
	key := types.NamespacedName{Namespace: callerOf(ctx).namespace, Name: request.Name}
	var found any
	var err error
	switch request.Kind {
	case openapi.LibraryKindActionTypes:
		actionType := &api.ActionType{}
		found, err = s.libraryObject(ctx, key, actionType, &actionType.Spec)
	case openapi.LibraryKindTools:
		tool := &api.Tool{}
		found, err = s.libraryObject(ctx, key, tool, &tool.Spec)
	case openapi.LibraryKindSecrets:
		found, err = s.secret(ctx, key)
	default:
		return nil, noLibrary()
	}
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, notFound("The library has no %s in %s", cut(request.Name, maxShownRevision), request.Kind)
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("encode library object: %w", err)
	}
	return jsonText(text), nil
}

// libraryObject reads an object and returns its spec, nil if there is none.
func (s *Server) libraryObject(ctx context.Context, key types.NamespacedName, object client.Object, spec any) (any, error) {
	found, err := s.find(ctx, key, object)
	if err != nil {
		return nil, fmt.Errorf("read library object: %w", err)
	}
	if !found {
		return nil, nil
	}
	return spec, nil
}

// secret is the name of a Secret that may be referred to, nil if it is none.
func (s *Server) secret(ctx context.Context, key types.NamespacedName) (any, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(secretKind)
	found, err := s.find(ctx, key, object)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	if !found || !api.IsCredential(object) {
		return nil, nil
	}
	return map[string]string{"name": object.Name}, nil
}
