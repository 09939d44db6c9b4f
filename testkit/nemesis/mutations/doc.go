// Package mutations has faults to plant into Parley. They show whether TestNemesis finds anything: with each of them,
// one of its rules must be broken.
//
// Each NN-name.patch is one fault, in the production code. It begins with three paragraphs: "Plants" says what a user
// would notice, "Rule" which rules of testkit/nemesis find it, and "Fault" which injected faults it takes to show.
// They are written for what TestNemesis starts: processes with SQLite, two gateways with Redis.
//
// make test-mutations plants one after the other into a copy of the tree and runs TestNemesis there
// (scripts/mutations). The tests of this package keep the patches current: they must apply and compile.
package mutations
