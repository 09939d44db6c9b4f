// Package config reads environment variables into a service's Config.
//
// A Config is a struct with `env`, `envDefault`, `valid` and `doc` tags. Services embed the blocks in
// blocks.go, so that a variable has one name and one meaning everywhere. [Load] reads a Config, [Check]
// validates one, and [Reference] lists its variables for docs/configuration.md. All problems are reported
// together, in one line, without values that could contain a password.
//
// Reading order: config.go (how a Config is read), valid.go (the rules of the tag `valid`), limits.go (bounds that the
// variable LIMITS sets together), removed.go (variables that stop the start), then the blocks.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Load reads T, a Config, from the environment. A variable that is set but empty counts as unset. The error is one line
// that names every missing and every invalid variable.
func Load[T any]() (T, error) {
	return LoadFrom[T](os.Getenv)
}

// LoadFrom is [Load] with a custom lookup function.
func LoadFrom[T any](getenv func(name string) string) (T, error) {
	var v T
	fields := fieldsOf(reflect.ValueOf(&v).Elem())
	environment := make(map[string]string)
	for _, f := range fields {
		if value := getenv(f.name); value != "" {
			environment[f.name] = value
		}
	}
	wrong, err := wrongValues(fields, env.ParseWithOptions(&v, env.Options{Environment: environment}))
	if err != nil {
		return v, err
	}
	config := reflect.ValueOf(&v).Elem()
	if err := setBounds(config); err != nil {
		return v, err
	}
	return v, check(config, append(wrong, stillSet(getenv)...))
}

// SetDefaults sets every zero field of v, a pointer to a Config written by hand, to its default, and every
// zero bound to its value in the profile of v.
func SetDefaults(v any) error {
	err := env.ParseWithOptions(v, env.Options{Environment: map[string]string{}, SetDefaultsForZeroValuesOnly: true})
	config := reflect.ValueOf(v).Elem()
	if _, err = wrongValues(fieldsOf(config), err); err != nil {
		return err
	}
	return setBounds(config)
}

// Check validates v, a Config or a pointer to one: required fields that are empty, the rules of the tags
// `valid`, the results of Validate() []string of v and its blocks, and problems found by the caller. It
// returns nil for a valid Config.
func Check(v any, problems ...string) error {
	return check(reflect.Indirect(reflect.ValueOf(v)), problems)
}

// Missing lists the variables of v, a Config or a pointer to one, that are required and empty.
func Missing(v any) []string {
	var names []string
	for _, f := range fieldsOf(reflect.Indirect(reflect.ValueOf(v))) {
		if f.required && f.value.IsZero() {
			names = append(names, f.name)
		}
	}
	return names
}

// check reports one problem per variable, the caller's first, without duplicates.
func check(v reflect.Value, problems []string) error {
	var all []string
	for _, problem := range problems {
		all = addProblem(all, problem)
	}
	for _, name := range Missing(v.Interface()) {
		all = addProblem(all, name+" is required")
	}
	for _, f := range fieldsOf(v) {
		if problem := invalid(f); problem != "" {
			all = addProblem(all, problem)
		}
	}
	for _, problem := range validate(v) {
		all = addProblem(all, problem)
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New("configuration: " + strings.Join(all, "; "))
}

// addProblem skips known problems and a second problem of the same variable.
func addProblem(all []string, problem string) []string {
	name, _, _ := strings.Cut(problem, " ")
	isVariable := name == strings.ToUpper(name)
	for _, known := range all {
		if known == problem || isVariable && strings.HasPrefix(known, name+" ") {
			return all
		}
	}
	return append(all, problem)
}

// validate calls Validate on v and every block in it. A method promoted from an embedded block runs twice; its problems
// are added once.
func validate(v reflect.Value) []string {
	var problems []string
	if block, ok := v.Interface().(interface{ Validate() []string }); ok {
		problems = block.Validate()
	}
	for structField, value := range v.Fields() {
		if isBlock(structField) {
			problems = append(problems, validate(value)...)
		}
	}
	return problems
}

// field is one variable of a Config.
type field struct {
	name, goName string
	value        reflect.Value
	tag          reflect.StructTag
	required     bool
}

// fieldsOf lists the variables of a struct and of the blocks in it.
func fieldsOf(v reflect.Value) []field {
	var fields []field
	for structField, value := range v.Fields() {
		name, options, _ := strings.Cut(structField.Tag.Get("env"), ",")
		switch {
		case isBlock(structField):
			fields = append(fields, fieldsOf(value)...)
		case structField.IsExported() && name != "" && name != "-":
			fields = append(fields, field{
				name: name, goName: structField.Name, value: value, tag: structField.Tag,
				required: slices.Contains(strings.Split(options, ","), "required"),
			})
		}
	}
	return fields
}

func isBlock(f reflect.StructField) bool {
	_, tagged := f.Tag.Lookup("env")
	return f.IsExported() && !tagged && f.Type.Kind() == reflect.Struct
}

// wrongValues converts env's error to one problem per variable. Any other error is a programming error in the Config.
func wrongValues(fields []field, err error) ([]string, error) {
	if err == nil {
		return nil, nil
	}
	aggregate, ok := errors.AsType[env.AggregateError](err)
	if !ok {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	var problems []string
	for _, e := range aggregate.Errors {
		if _, ok := errors.AsType[env.VarIsNotSetError](e); ok {
			continue // Check reports it, like those that are set but empty
		}
		parse, ok := errors.AsType[env.ParseError](e)
		i := slices.IndexFunc(fields, func(f field) bool { return ok && f.goName == parse.Name })
		if i < 0 {
			return nil, fmt.Errorf("reading the environment: %w", e)
		}
		problems = append(problems, fields[i].name+" "+expectation(fields[i].value))
	}
	return problems, nil
}

// expectation describes the valid values without repeating the given one.
func expectation(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Duration:
		return "must be a duration such as 30s or 24h"
	case Rate:
		return "must be a rate such as 600/1m, or 0"
	case Prefixes:
		return "must be networks such as 10.0.0.0/8, separated by commas"
	case slog.Level:
		return "must be DEBUG, INFO, WARN or ERROR"
	case bool:
		return "must be true or false"
	case int, int64, int32, uint, uint64, uint32, uint16:
		return "must be a whole number"
	case float64:
		return "must be a number"
	}
	return "has a wrong value"
}

// Variable is one environment variable of a Config.
type Variable struct {
	Name     string
	Default  string
	Required bool
	Doc      string
}

// Reference lists the variables of v, a Config or a pointer to one, in the order in which they are declared.
func Reference(v any) []Variable {
	var variables []Variable
	for _, f := range fieldsOf(reflect.Indirect(reflect.ValueOf(v))) {
		variables = append(variables, Variable{
			Name:     f.name,
			Default:  f.tag.Get("envDefault"),
			Required: f.required,
			Doc:      f.tag.Get("doc"),
		})
	}
	return variables
}
