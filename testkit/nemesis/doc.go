// Package nemesis decides whether Parley kept its promises while things broke: it has the record of what clients did
// and saw, the checker of that record, the timetable of faults that a seed draws, and the report.
//
// Start with record.go. check.go has the rules, one function each, order.go those of order, status.go those of
// statuses, and model.go those of a language model; all look things up in index.go, and story.go tells what the record
// has of a broken one. timetable.go draws faults from a seed, shrink.go removes faults from a timetable while a rule
// stays broken, and report.go writes what happened.
//
// The package runs nothing: the end-to-end tests start the services, the clients and the faults (TestNemesis).
//
// What the rules take for granted of a record:
//
//   - Views, counts and the last deliveries are noted when all faults have ended and the system is at rest.
//   - Each message has its text from [Text], also as the caption of a file, and the bot's answer contains it, unless it
//     is [FailureText].
//   - Each attempt is noted, also without an answer. An actor of the visitor's side is one visitor, with one chat, and
//     clients and the owners of views have the same name.
//   - A view knows which messages the visitor wrote. In a chat with an answer expected, the bot writes it.
//   - A client that does not return before the end is noted as gone. A load that failed is nil.
package nemesis
