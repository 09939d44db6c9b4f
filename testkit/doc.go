// Package testkit holds what tests run on: database servers in this process or beside it. Production code never imports it, so no
// service links or requires an engine that only tests need.
//
// It is a module of its own that requires pkg, and pkg does not require it: tests that need both an engine and the store stand here
// (testkit/mongodb), so that the modules have no cycle and each builds alone.
package testkit
