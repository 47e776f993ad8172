package cgroup

import (
	"encoding/json"
	"os"
	"testing"

	"pgregory.net/rapid"
)

func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestWeightVectors(t *testing.T) {
	var v struct {
		SharesEdge []struct {
			Shares    uint64 `json:"shares"`
			Linear    uint64 `json:"weight_old"`
			Quadratic uint64 `json:"weight_new"`
		} `json:"shares_edge"`
		Sweep struct {
			Linear    int `json:"distinct_weight_old"`
			Quadratic int `json:"distinct_weight_new"`
		} `json:"sweep_1_64000"`
		Vectors []struct {
			MilliCPU         int64  `json:"milliCPU"`
			Shares           uint64 `json:"shares"`
			Linear           uint64 `json:"weight_old"`
			Quadratic        uint64 `json:"weight_new"`
			SharesFromWeight uint64 `json:"kubelet_shares_from_weight_old"`
			MilliFromWeight  int64  `json:"kubelet_milli_from_weight_old"`
			MilliFromShares  int64  `json:"kubelet_milli_from_shares"`
		} `json:"vectors"`
	}
	readVectors(t, "vectors/weights.json", &v)
	if len(v.SharesEdge) == 0 || len(v.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	for _, c := range v.SharesEdge {
		if got := WeightLinear(c.Shares); got != c.Linear {
			t.Errorf("WeightLinear(%d) = %d, want %d", c.Shares, got, c.Linear)
		}
		if got := WeightQuadratic(c.Shares); got != c.Quadratic {
			t.Errorf("WeightQuadratic(%d) = %d, want %d", c.Shares, got, c.Quadratic)
		}
	}
	for _, c := range v.Vectors {
		shares := MilliCPUToShares(c.MilliCPU)
		linear := WeightLinear(shares)
		if shares != c.Shares || linear != c.Linear || WeightQuadratic(shares) != c.Quadratic {
			t.Errorf("%dm: shares %d linear %d quadratic %d, want %d %d %d",
				c.MilliCPU, shares, linear, WeightQuadratic(shares), c.Shares, c.Linear, c.Quadratic)
		}
		if got := SharesFromWeight(linear); got != c.SharesFromWeight {
			t.Errorf("SharesFromWeight(%d) = %d, want %d", linear, got, c.SharesFromWeight)
		}
		if got := SharesToMilliCPU(SharesFromWeight(linear)); got != c.MilliFromWeight {
			t.Errorf("weight %d = %dm, want %dm", linear, got, c.MilliFromWeight)
		}
		if got := SharesToMilliCPU(shares); got != c.MilliFromShares {
			t.Errorf("SharesToMilliCPU(%d) = %d, want %d", shares, got, c.MilliFromShares)
		}
	}

	linear, quadratic := map[uint64]bool{}, map[uint64]bool{}
	for m := int64(1); m <= 64000; m++ {
		linear[WeightLinear(MilliCPUToShares(m))] = true
		quadratic[WeightQuadratic(MilliCPUToShares(m))] = true
	}
	if len(linear) != v.Sweep.Linear || len(quadratic) != v.Sweep.Quadratic {
		t.Errorf("distinct weights of 1m to 64000m: %d and %d, want %d and %d",
			len(linear), len(quadratic), v.Sweep.Linear, v.Sweep.Quadratic)
	}
}

func TestWeightFacts(t *testing.T) {
	for _, c := range []struct {
		milli             int64
		linear, quadratic uint64
	}{
		{100, 4, 17},
		{1000, 39, 100},
		{1024, 40, 102}, // 1024m is not one CPU
		{6000, 235, 421},
		{12000, 469, 742},
		{-5, 1, 1},
	} {
		shares := MilliCPUToShares(c.milli)
		if l, q := WeightLinear(shares), WeightQuadratic(shares); l != c.linear || q != c.quadratic {
			t.Errorf("%dm = %d, %d, want %d, %d", c.milli, l, q, c.linear, c.quadratic)
		}
	}
	if got := SharesFromWeight(0); got != 0 {
		t.Errorf("SharesFromWeight(0) = %d", got)
	}
}

func TestWeightProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		if a > b {
			a, b = b, a
		}
		sa, sb := MilliCPUToShares(a), MilliCPUToShares(b)
		if sa > sb || WeightLinear(sa) > WeightLinear(sb) || WeightQuadratic(sa) > WeightQuadratic(sb) {
			t.Fatalf("not monotone: %dm and %dm", a, b)
		}
		for _, w := range []uint64{WeightLinear(sa), WeightQuadratic(sa)} {
			if w < 1 || w > 10000 {
				t.Fatalf("weight %d of %dm", w, a)
			}
		}
	})
	// The kubelet's inverse errs downwards, by less than one step of the weight.
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.Uint64Range(2, 262144).Draw(t, "shares")
		back := SharesFromWeight(WeightLinear(shares))
		if back > shares || shares-back > 27 {
			t.Fatalf("%d shares come back as %d", shares, back)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.Uint64().Draw(t, "shares")
		if SharesToMilliCPU(shares) < 0 || WeightLinear(shares) > 10000 || WeightQuadratic(shares) > 10000 || SharesFromWeight(shares) > 262144 {
			t.Fatalf("%d out of range", shares)
		}
	})
}
