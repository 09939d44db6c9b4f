// Package fulldisk fills the disk of a test: a limit of the process on the size of its files fails a write in the same place.
package fulldisk
