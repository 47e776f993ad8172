package karpenter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// DecodeNodePool reads one NodePool in JSON, without applying defaults.
func DecodeNodePool(data []byte) (NodePool, error) {
	var pool NodePool
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &pool); err != nil {
		return NodePool{}, fmt.Errorf("NodePool %s: %w", nameOf(data), err)
	}
	pool.Raw = append(json.RawMessage(nil), data...)
	return pool, nil
}

// DecodeNodeClaim reads one NodeClaim in JSON.
func DecodeNodeClaim(data []byte) (NodeClaim, error) {
	var claim NodeClaim
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &claim); err != nil {
		return NodeClaim{}, fmt.Errorf("NodeClaim %s: %w", nameOf(data), err)
	}
	claim.Raw = append(json.RawMessage(nil), data...)
	return claim, nil
}

// DecodeNodePools reads a list of NodePools, as the API server gives it. One that cannot be read does not spoil the others: the
// error names each of them, and the rest is returned with it.
func DecodeNodePools(data []byte) ([]NodePool, error) {
	return decodeList(data, "NodePool", DecodeNodePool)
}

// DecodeNodeClaims reads a list of NodeClaims in the way of DecodeNodePools.
func DecodeNodeClaims(data []byte) ([]NodeClaim, error) {
	return decodeList(data, "NodeClaim", DecodeNodeClaim)
}

func decodeList[T any](data []byte, kind string, decode func([]byte) (T, error)) ([]T, error) {
	var list struct {
		Kind  string          `json:"kind"`
		Items json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	if list.Kind != "" && !strings.HasSuffix(list.Kind, "List") || list.Items == nil {
		return nil, fmt.Errorf("list: a %.80q without items", list.Kind)
	}
	var items []json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(list.Items, &items); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var out []T
	var errs []error
	for i, raw := range items {
		var is struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		// What is no object at all, decode says.
		if kjson.UnmarshalCaseSensitivePreserveInts(raw, &is) == nil {
			if is.Kind != "" && is.Kind != kind {
				continue
			}
			if is.Metadata.Name == "" {
				errs = append(errs, fmt.Errorf("%s without a name: items[%d]", kind, i))
				continue
			}
		}
		object, err := decode(raw)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, object)
	}
	return out, joinFirst(errs)
}

// joinFirst joins the first few of many errors.
func joinFirst(errs []error) error {
	const most = 10
	if more := len(errs) - most; more > 0 {
		errs = append(errs[:most:most], fmt.Errorf("and %d others", more))
	}
	return errors.Join(errs...)
}

// nameOf finds the name in an object that could not be decoded, for its error.
func nameOf(data []byte) string {
	var object map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &object) != nil {
		return "?"
	}
	name, found, err := unstructured.NestedString(object, "metadata", "name")
	if !found || err != nil {
		return "?"
	}
	return strconv.Quote(name)
}
