// Package fulldisk simulates a full disk: a limit on the process's file size makes writes fail in the same place.
package fulldisk
