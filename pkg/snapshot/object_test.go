package snapshot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

func TestDecodeList(t *testing.T) {
	list := func(items string) string { return `{"apiVersion":"v1","kind":"List","items":[` + items + `]}` }
	pod := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q}}`, name)
	}
	tests := map[string]struct {
		json string
		want []string
		err  string
	}{
		"list":            {list(pod("b") + "," + pod("a")), []string{"b", "a"}, ""},
		"empty":           {list(""), []string{}, ""},
		"unknown fields":  {list(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","new":1},"later":{}}`), []string{"a"}, ""},
		"other kinds":     {list(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}},` + pod("a")), []string{"a"}, ""},
		"other version":   {list(`{"apiVersion":"v2","kind":"Pod","metadata":{"name":"n"}},` + pod("a")), []string{"a"}, ""},
		"other shape":     {list(`{"apiVersion":"x/v1","kind":"Thing","spec":"text"},` + pod("a")), []string{"a"}, ""},
		"typed list":      {`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}}]}`, []string{"a"}, ""},
		"typed and empty": {`{"apiVersion":"v1","kind":"PodList","items":null}`, []string{}, ""},
		"no kind":         {`{"items":[{"metadata":{"name":"a"}}]}`, []string{"a"}, ""},
		"case matters":    {list(`{"apiVersion":"v1","kind":"Pod","Metadata":{"Name":"x"},"metadata":{"NAME":"y","name":"a"}}`), []string{"a"}, ""},

		"broken item":      {list(pod("a") + `,{"apiVersion":"v1","kind":"Pod","metadata":{"name":1}}`), nil, "items[1]: "},
		"broken quantity":  {list(`{"kind":"Pod","spec":{"containers":[{"resources":{"limits":{"cpu":"1.2.3"}}}]}}`), nil, "items[0]: quantities must match"},
		"broken kind":      {list(`{"kind":1,"apiVersion":"v1"}`), nil, "items[0]: "},
		"endless number":   {list(`{"kind":"Pod","metadata":{"generation":` + strings.Repeat("1", 1<<20) + `}}`), nil, "items[0]: json: cannot unmarshal number 1111"},
		"null item":        {list(pod("a") + `,null`), nil, `items[1]: not an object: "null"`},
		"text item":        {list(`"pod"`), nil, "items[0]: not an object"},
		"an error's body":  {`{"kind":"Status","apiVersion":"v1","status":"Failure"}`, nil, `a "Status", not a List`},
		"one pod":          {pod("a"), nil, `a "Pod", not a List`},
		"no items":         {`{"kind":"List"}`, nil, "no items"},
		"items by case":    {`{"kind":"List","Items":[]}`, nil, "no items"},
		"items an object":  {`{"kind":"List","items":{}}`, nil, "items are no list"},
		"cut off":          {list(pod("a"))[:40], nil, "unexpected end"},
		"empty file":       {"", nil, "unexpected end"},
		"two documents":    {list("") + list(""), nil, "invalid character"},
		"array":            {"[" + pod("a") + "]", nil, "cannot unmarshal"},
		"deep":             {strings.Repeat(`{"items":[`, 20000), nil, "depth"},
		"too many items":   {list(strings.Repeat("{},", maxListItems) + "{}"), nil, ErrTooManyEntries.Error()},
		"too many of them": {list(`{"spec":{"containers":[` + strings.Repeat("{},", maxListCommas) + `{}]}}`), nil, ErrTooManyEntries.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pods, err := decodeList[corev1.Pod]([]byte(test.json), podKind)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || len(err.Error()) > 500 {
					t.Fatalf("err = %v, want %q in it", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			names := []string{}
			for _, p := range pods {
				names = append(names, p.Name)
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	s := bundleOf(t, map[string]string{
		"cluster/pods.json":        `{"kind":"List","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}]}`,
		"cluster/nodes.json":       `{"kind":"List","items":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}]}`,
		"cluster/events.json":      `{"kind":"List","items":[{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"}},{"kind":"Event","apiVersion":"events.k8s.io/v1"}]}`,
		"cluster/replicasets.json": `{"kind":"List","items":[{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"r"}}]}`,
	})
	pods, err := s.Pods()
	if err != nil || len(pods) != 1 || pods[0].Name != "p" {
		t.Errorf("Pods: %v, %v", pods, err)
	}
	if again, _ := s.Pods(); &again[0] != &pods[0] {
		t.Error("Pods are decoded twice")
	}
	if nodes, err := s.Nodes(); err != nil || len(nodes) != 1 || nodes[0].Name != "n" {
		t.Errorf("Nodes: %v, %v", nodes, err)
	}
	if events, err := s.Events(); err != nil || len(events) != 1 || events[0].Name != "e" {
		t.Errorf("Events: %v, %v", events, err)
	}
	if sets, err := s.ReplicaSets(); err != nil || len(sets) != 1 || sets[0].Name != "r" {
		t.Errorf("ReplicaSets: %v, %v", sets, err)
	}
}

func TestObjectsAbsentOrBroken(t *testing.T) {
	s := bundleOf(t, map[string]string{
		gapsName:             `[{"path":"cluster/events.json","reason":"Forbidden"}]`,
		"cluster/nodes.json": `{"kind":"List","items":[{"kind":"Node","metadata":{"name":1}}]}`,
	})
	if _, err := s.Pods(); kind(t, err) != "not exist" {
		t.Errorf("Pods: %v", err)
	}
	if _, err := s.Events(); kind(t, err) != "gap Forbidden" {
		t.Errorf("Events: %v", err)
	}
	if _, err := s.Nodes(); err == nil || !strings.HasPrefix(err.Error(), "cluster/nodes.json: items[0]: ") {
		t.Errorf("Nodes: %v", err)
	}
	if _, err := bundleOf(t, nil).ReplicaSets(); !errors.Is(err, ErrNotCollected) {
		t.Errorf("ReplicaSets: %v", err)
	}
}

func FuzzDecodeList(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"resources":{"requests":{"cpu":"1500m","memory":"1Gi"}},"livenessProbe":{"httpGet":{"port":"http"}}}]}}]}`))
	f.Add([]byte(`{"items":[{"kind":"Node"},null]}`))
	f.Add([]byte(`{"items":[{"spec":{"overhead":{"cpu":"1e999999999"}}}]}`))
	f.Add([]byte(`{"kind":"Status"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		pods, err := decodeList[corev1.Pod](data, podKind)
		if err == nil && pods == nil {
			t.Error("neither a list nor an error")
		}
		for _, p := range pods {
			if p.Kind != "" && p.Kind != "Pod" {
				t.Errorf("a %q among the pods", p.Kind)
			}
		}
	})
}
