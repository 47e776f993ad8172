package cli

import (
	"fmt"
	"os"
	"time"
	_ "time/tzdata" // --timezone must not hang on what the machine has

	"github.com/spf13/cobra"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/shrink"
	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/price"
)

// karpenterOptions are what a question supposes of Karpenter.
type karpenterOptions struct {
	version  string
	timezone string
	zone     *time.Location
	// pricesFile states prices, for commands that weigh them.
	pricesFile string
	prices     disruption.InstanceTypes
}

func (o *karpenterOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.version, "karpenter-version", "", "Rules of this Karpenter, such as 1.14 or v1.6.4, where the bundle does not tell its version")
	mustRegister(cmd, "karpenter-version", cobra.NoFileCompletions)
}

// addZoneFlag is for commands that tell when windows open and close.
func (o *karpenterOptions) addZoneFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.timezone, "timezone", "", "Show the times of this zone beside UTC, such as Asia/Seoul")
	mustRegister(cmd, "timezone", cobra.NoFileCompletions)
}

// addPriceFlags is for commands that weigh prices.
func (o *karpenterOptions) addPriceFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.pricesFile, "prices", "", "Prices in dollars: a file of lines instance_type,zone,capacity_type,usd_per_hour, or the metrics of Karpenter's controller")
}

const maxPriceFile = 64 << 20

func (o *karpenterOptions) validate() error {
	if o.pricesFile != "" {
		data, err := readFile(o.pricesFile, maxPriceFile)
		if err != nil {
			return fmt.Errorf("--prices: %w", err)
		}
		if o.prices, err = price.ReadFile(string(data)); err != nil {
			return fmt.Errorf("--prices=%s: %w", o.pricesFile, err)
		}
	}
	if o.timezone != "" {
		var err error
		if o.zone, err = time.LoadLocation(o.timezone); err != nil {
			return fmt.Errorf("--timezone=%q is no time zone that is known here: give an IANA name such as Asia/Seoul or UTC", o.timezone)
		}
	}
	if o.version == "" {
		return nil
	}
	if _, _, err := karpenter.RulesFor(o.version); err != nil {
		return fmt.Errorf("--karpenter-version: %w", err)
	}
	return nil
}

func (o *karpenterOptions) options() shrink.Options {
	return shrink.Options{KarpenterVersion: o.version, Prices: o.prices, Zone: o.zone}
}

// readFile reads a regular file of at most so many bytes.
func readFile(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", name, most)
	}
	return os.ReadFile(name)
}
