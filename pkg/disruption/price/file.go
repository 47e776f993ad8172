package price

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// columns of a price file in CSV, the first line of which may name them.
const columns = "instance_type,zone,capacity_type,usd_per_hour"

// capacityTypes are those of Karpenter; another word is a slip, as are columns in another order.
var capacityTypes = map[string]bool{"on-demand": true, "spot": true, "reserved": true}

// ReadFile reads prices that someone states: either lines of four columns, the instance type, its zone ("*" for every other), its capacity
// type and dollars an hour, with comments after #; or the Prometheus text of Karpenter's controller. Nothing of a file that is wrong in any
// line is used.
func ReadFile(text string) (disruption.InstanceTypes, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	if isMetrics(text) {
		m, err := ReadMetrics(text)
		if err == nil && len(m.Types) == 0 {
			err = fmt.Errorf("no series %s in the metrics", OfferingPrice)
		}
		return m.Types, err
	}
	types := disruption.InstanceTypes{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" || strings.ReplaceAll(line, " ", "") == columns {
			continue
		}
		if err := readLine(types, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if len(types) == 0 {
		return nil, errors.New("there is no price in it; a line is " + columns)
	}
	return types, nil
}

// isMetrics tells the Prometheus text by its first line of content, which is a series or a comment that declares one.
func isMetrics(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# HELP "), strings.HasPrefix(line, "# TYPE "):
			return true
		case line != "" && !strings.HasPrefix(line, "#"):
			return strings.HasPrefix(line, "karpenter_")
		}
	}
	return false
}

func readLine(types disruption.InstanceTypes, line string) error {
	fields := strings.Split(line, ",")
	if len(fields) != 4 {
		return fmt.Errorf("%.80q has %d columns, want 4: %s", line, len(fields), columns)
	}
	for i := range fields {
		if fields[i] = strings.TrimSpace(fields[i]); fields[i] == "" {
			return fmt.Errorf("%.80q: column %d is empty, want %s", line, i+1, columns)
		}
	}
	if !capacityTypes[fields[2]] {
		return fmt.Errorf("capacity type %.40q: want on-demand, spot or reserved", fields[2])
	}
	value, err := strconv.ParseFloat(fields[3], 64)
	if err != nil || !isPrice(value) {
		return fmt.Errorf("%.40q is no price in dollars an hour", fields[3])
	}
	offering := disruption.Offering{Zone: fields[1], CapacityType: fields[2]}
	if _, twice := types[fields[0]][offering]; twice {
		return fmt.Errorf("%s in zone %s, %s has a price already", fields[0], fields[1], fields[2])
	}
	add(types, fields[0], offering, value)
	return nil
}
