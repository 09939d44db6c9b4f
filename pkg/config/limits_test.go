package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/config"
)

type bounded struct {
	config.Limits
	config.Budgets
	config.Uploads
	Ping time.Duration `env:"-" constant:"25s"`
}

// loadBounded reads a Config with these variables.
func loadBounded(vars map[string]string) (bounded, error) {
	return config.LoadFrom[bounded](func(name string) string { return vars[name] })
}

func TestLimitsSetTheBounds(t *testing.T) {
	t.Parallel()
	const mib, week = 1 << 20, 168 * time.Hour
	for profile, want := range map[string]struct {
		company config.Rate
		quota   int64
		visitor int
	}{
		"":       {config.Rate{Count: 256 * mib, Per: week}, 2 << 30, 2},
		"none":   {config.Rate{}, 2 << 30, 0},
		"small":  {config.Rate{Count: 64 * mib, Per: week}, 512 << 20, 2},
		"medium": {config.Rate{Count: 256 * mib, Per: week}, 2 << 30, 2},
		"large":  {config.Rate{Count: 3072 * mib, Per: 72 * time.Hour}, 5 << 30, 2},
	} {
		got, err := loadBounded(map[string]string{"LIMITS": profile})
		if err != nil {
			t.Fatal(err)
		}
		if got.BytesCompany != want.company || got.QuotaCompany != want.quota || got.MaxUploadsVisitor != want.visitor {
			t.Errorf("LIMITS=%s: got %+v, want %+v", profile, got, want)
		}
		if got.MaxUploads != 64 || got.Ping != 25*time.Second {
			t.Errorf("LIMITS=%s: got %+v, want the constants", profile, got)
		}
	}
}

func TestUnknownLimitsAreAnError(t *testing.T) {
	t.Parallel()
	_, err := loadBounded(map[string]string{"LIMITS": "huge"})
	if want := "configuration: LIMITS must be none, small, medium or large"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDefaultsKeepBoundsOfAConfigWrittenByHand(t *testing.T) {
	t.Parallel()
	b := bounded{Limits: config.Limits{Limits: config.LimitsSmall}, Ping: time.Second}
	b.BytesCompany = config.Rate{Count: 7, Per: time.Hour}
	if err := config.SetDefaults(&b); err != nil {
		t.Fatal(err)
	}
	if b.BytesCompany.Count != 7 || b.Ping != time.Second || b.BytesVisitor.Count != 4<<20 || b.MaxUploads != 64 {
		t.Errorf("got %+v, want set bounds unchanged and those of small for the rest", b)
	}
}

func TestBoundsListsTheProfiles(t *testing.T) {
	t.Parallel()
	for _, b := range config.Bounds(bounded{}) {
		if len(b.Values) != len(config.Profiles()) || slices.Contains(b.Values, "") {
			t.Errorf("%s: got the values %q, want one for each profile", b.Doc, b.Values)
		}
	}
}

func TestRemovedVariablesStopTheStart(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, r := range config.RemovedVariables() {
		for _, name := range r.Names {
			if known[name] {
				t.Errorf("%s is listed twice", name)
			}
			known[name] = true
			_, err := loadBounded(map[string]string{name: "1"})
			if want := name + " is no longer a setting: " + r.Instead; err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s=1: got %v, want %s", name, err, want)
			}
			if _, err := loadBounded(map[string]string{name: ""}); err != nil {
				t.Errorf("%s empty: got %v, want nil", name, err)
			}
		}
	}
}
