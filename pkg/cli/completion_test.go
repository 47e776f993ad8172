package cli

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ argv, want []string }{
		{nil, nil},
		{[]string{"kubectl-noderes"}, nil},
		{[]string{"/bin/kubectl-noderes", "version"}, []string{"version"}},
		{[]string{"/bin/kubectl_complete-noderes", "explain", ""}, []string{"__complete", "explain", ""}},
		{[]string{"kubectl_complete-noderes.exe", "e"}, []string{"__complete", "e"}},
		{[]string{"kubectl-noderes", "kubectl_complete-noderes"}, []string{"kubectl_complete-noderes"}},
	} {
		if got := Words(c.argv); !slices.Equal(got, c.want) {
			t.Errorf("Words(%q) = %q, want %q", c.argv, got, c.want)
		}
	}
}
