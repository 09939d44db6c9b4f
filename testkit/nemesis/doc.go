// Package nemesis decides whether Parley kept its promises while things broke: it has the record of what clients did and
// saw, the checker of that record, the timetable of faults that a seed draws, and the report.
//
// Start with record.go. check.go has the rules, one function each; timetable.go draws faults from a seed, shrink.go
// removes faults from a timetable while a rule stays broken, and report.go writes what happened.
//
// The package runs nothing: the end-to-end tests start the services, the clients and the faults (TestNemesis).
package nemesis
