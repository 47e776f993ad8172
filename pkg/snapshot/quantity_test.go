package snapshot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCheckQuantities(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"limits":{"cpu":"1e999999999"}}`:                            false,
		`{"limits":{"cpu":"123456789012345678901e999999999"}}`:        false,
		`{"requests":{"cpu":"-0.5E-999999999"}}`:                      false,
		`{"allocatable":{"cpu":1e999999999}}`:                         false,
		`{"overhead":{"cpu":"1\u0065999999999"}}`:                     false,
		`{"Limits":[{"x":{"cpu":"\u0031e999999999"}}]}`:               false,
		`{"limits":{"cpu":"1e3","memory":"1e000000003"}}`:             true,
		`{"limits":{"memory":"` + strings.Repeat("9", 40) + `Mi"}}`:   true,
		`{"labels":{"commit":"12e4567890"}}`:                          true,
		`{"limits":{"cpu":"1"},"message":"a 1e999999999 \u003c b"}`:   true,
		`{"limits":{"cpu":"1e99999999`:                                true, // no JSON, refused elsewhere
		`{"image":"x@sha256:1e999999999","resources":{"limits":{}}}`:  true,
		`{"resources":{"claims":[{"name":"dead1e999999999"}]},"n":3}`: true,
	} {
		if err := CheckQuantities([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestEndlessQuantityInAPod(t *testing.T) {
	list := `{"items":[{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e999999999"}}}]}}]}`
	if _, err := decodeList[corev1.Pod]([]byte(list), podKind); err == nil || !strings.Contains(err.Error(), `items[0]: a quantity out of range: "1e999999999"`) {
		t.Errorf("%v", err)
	}
}
