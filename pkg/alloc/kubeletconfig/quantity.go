package kubeletconfig

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

type quantity = resource.Quantity

// Bounds for the text of a quantity. Beyond them no value makes sense, and the parser would compute powers of ten without end.
const (
	maxQuantityLen      = 64
	maxQuantityExponent = 2 // digits
)

func parseQuantity(text string) (quantity, error) {
	tooLarge := len(text) > maxQuantityLen
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		tooLarge = tooLarge || len(strings.TrimLeft(strings.TrimLeft(text[i+1:], "+-"), "0")) > maxQuantityExponent
	}
	if tooLarge {
		return quantity{}, fmt.Errorf("quantity out of range: %s", cut.Quote(text))
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return quantity{}, fmt.Errorf("not a quantity: %s", cut.Quote(text))
	}
	return q, nil
}
