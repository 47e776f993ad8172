package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResourceNames(t *testing.T) {
	for _, tt := range []struct {
		kind resourceType
		args []string
		want []string // nil: an error
	}{
		{kindPod, []string{"a", "pod/b", "po/c", "PODS/d"}, []string{"a", "b", "c", "d"}},
		{kindNode, []string{"node/n1", "no/n2"}, []string{"n1", "n2"}},
		{kindNodePool, []string{"a", "nodepool/b", "nodepools.karpenter.sh/c"}, []string{"a", "b", "c"}},
		{kindNode, []string{"nodepool/a"}, nil},
		{kindPod, []string{"node/n1"}, nil},
		{kindPod, []string{"deploy/web"}, nil},
		{kindPod, []string{"pod/"}, nil},
		{kindPod, []string{""}, nil},
		{kindPod, []string{"pod/a/b"}, nil},
		{kindPod, []string{"/a"}, nil},
	} {
		got, err := resourceNames(tt.kind, tt.args)
		if (err != nil) != (tt.want == nil) {
			t.Errorf("%s %q: error %v", tt.kind, tt.args, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tt.kind, tt.args, diff)
		}
	}
}
