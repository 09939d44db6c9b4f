package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// The values of LIMITS: one choice for the bounds that belong together, instead of a setting for each. A field of a
// Config that is such a bound has no variable (`env:"-"`) but a value in its tags:
//
//	Rate config.Rate `env:"-" none:"0" small:"75/1m" medium:"300/1m" large:"1200/1m"`
//	Size int         `env:"-" constant:"64"`
//
// A constant is the value in each profile without a tag of its own. A Config written by hand may set the field.
const (
	LimitsNone   = "none"
	LimitsSmall  = "small"
	LimitsMedium = "medium"
	LimitsLarge  = "large"
)

// Profiles lists the values of LIMITS, by size.
func Profiles() []string { return []string{LimitsNone, LimitsSmall, LimitsMedium, LimitsLarge} }

// limitsVariable selects the profile of a Config.
const limitsVariable = "LIMITS"

// Limits selects the profile of a service's bounds.
type Limits struct {
	Limits string `env:"LIMITS" envDefault:"medium" valid:"oneof none small medium large" doc:"bounds of tenants: small, medium or large, for streams of 256 MiB, 1 GiB or 12 GiB ([the values](security.md#bounds)); none: for trials and load tests; the same in all services"`
}

// Bound is a bound of a Config with its value in each profile.
type Bound struct {
	Doc    string
	Values []string // in the order of [Profiles]
}

// Bounds lists the documented bounds of v, a Config or a pointer to one, that depend on the profile.
func Bounds(v any) []Bound {
	var bounds []Bound
	for _, f := range boundsOf(reflect.Indirect(reflect.ValueOf(v))) {
		doc := f.tag.Get("doc")
		if doc == "" {
			continue
		}
		b := Bound{Doc: doc}
		for _, profile := range Profiles() {
			text, _ := f.in(profile)
			b.Values = append(b.Values, text)
		}
		bounds = append(bounds, b)
	}
	return bounds
}

// setBounds sets the zero bounds of a Config to their values in its profile.
func setBounds(v reflect.Value) error {
	profile := LimitsMedium
	for _, f := range fieldsOf(v) {
		if f.name == limitsVariable && slices.Contains(Profiles(), f.value.String()) {
			profile = f.value.String()
		}
	}
	for _, f := range boundsOf(v) {
		text, ok := f.in(profile)
		if !ok || !f.value.IsZero() {
			continue
		}
		if err := setBound(f.value, text); err != nil {
			return fmt.Errorf("the bound %s has the value %q: %w", f.goName, text, err)
		}
	}
	return nil
}

// in returns the value of a bound in a profile.
func (f field) in(profile string) (text string, ok bool) {
	if text, ok = f.tag.Lookup(profile); ok {
		return text, true
	}
	return f.tag.Lookup("constant")
}

// boundsOf lists the bounds of a struct and of the blocks in it.
func boundsOf(v reflect.Value) []field {
	var bounds []field
	for structField, value := range v.Fields() {
		if isBlock(structField) {
			bounds = append(bounds, boundsOf(value)...)
			continue
		}
		f := field{goName: structField.Name, value: value, tag: structField.Tag}
		if _, ok := f.in(LimitsMedium); ok {
			bounds = append(bounds, f)
		}
	}
	return bounds
}

// setBound reads text into a bound: a number, a [time.Duration] or a [Rate].
func setBound(v reflect.Value, text string) error {
	switch bound := v.Addr().Interface().(type) {
	case *Rate:
		return bound.UnmarshalText([]byte(text))
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*bound = d
		return err
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		v.SetInt(number)
	}
	return err
}
