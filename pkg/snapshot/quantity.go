package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// endlessQuantity is a number with an exponent of six digits and more:
// apimachinery's quantities then compute powers of ten for ever, in parsing or
// in the first sum. maybeEndless finds where one may stand, in escapes too.
var (
	endlessQuantity = regexp.MustCompile(`^[+-]?[0-9.]+[eE][+-]?0*[1-9][0-9]{5,}$`)
	maybeEndless    = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{6}|\\u00(?:3[0-9]|2[bBdDeE]|[46]5)`)
)

// quantityFields are the fields of pods, nodes and workloads below which
// quantities stand. A label may look like one: 12e345678.
var quantityFields = []string{"resources", "requests", "limits", "capacity", "allocatable", "allocatedResources", "overhead", "sizeLimit", "divisor"}

// CheckQuantities refuses JSON with a quantity that cannot be parsed or summed
// in any time. It is for objects of the API that come from strangers.
func CheckQuantities(data []byte) error {
	if !maybeEndless.Match(data) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil // which the decoding proper will refuse
	}
	return checkQuantities(value, false)
}

func checkQuantities(value any, inside bool) error {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			within := inside || slices.ContainsFunc(quantityFields, func(f string) bool { return strings.EqualFold(f, key) })
			if err := checkQuantities(v[key], within); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := checkQuantities(element, inside); err != nil {
				return err
			}
		}
	case string, json.Number:
		if text := fmt.Sprint(v); inside && endlessQuantity.MatchString(strings.TrimSpace(text)) {
			return fmt.Errorf("a quantity out of range: %s", quote(text))
		}
	}
	return nil
}
