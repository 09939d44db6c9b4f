// Command cutdisk mounts a disk whose power can be cut; package cutdisk has the model. It prints "mounted" and
// reads commands from stdin, one a line:
//
//	cut         takes back everything that was not synced; prints a line "lost PATH FROM TO" for each file that
//	            has lost something (its length before and after), then "ok N bytes lost"
//	cut SEED    the same for each file with a probability of one half
//	slow DELAY  a sync takes so long from now on, such as 20ms; prints "ok"
//	full        there is no space any more; prints "ok"
//	free        there is space; prints "ok"
//	quit        unmounts and ends, as the end of stdin and SIGTERM do; prints "ok"
//
// A command that fails prints "error: ..." instead.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parley-chat/parley/testkit/engines/cutdisk"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cutdisk:", err)
		os.Exit(1)
	}
}

func run() error {
	var cfg cutdisk.Config
	flag.StringVar(&cfg.Backing, "backing", "", "the folder with the content")
	flag.StringVar(&cfg.Mount, "mount", "", "the folder where programs find it")
	flag.DurationVar(&cfg.SyncDelay, "sync-delay", 0, "how long a sync takes")
	rename := flag.String("rename", string(cutdisk.Ordered), "a rename over an existing file: ordered (ext4) or strict (XFS)")
	flag.Parse()
	cfg.Rename = cutdisk.Rename(*rename)
	disk, err := cutdisk.Mount(cfg)
	if err != nil {
		return err
	}
	fmt.Println("mounted")
	for command := range commands() {
		if command == "quit" {
			break
		}
		if err := obey(disk, command); err != nil {
			fmt.Println("error:", err)
		}
	}
	if err := disk.Unmount(); err != nil {
		return errors.Join(err, syscall.Unmount(cfg.Mount, syscall.MNT_DETACH)) // leaves no dead mount
	}
	fmt.Println("ok")
	return nil
}

// commands returns the lines of stdin. The channel closes at its end and at a signal.
func commands() <-chan string {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	lines := make(chan string)
	go func() {
		input := bufio.NewScanner(os.Stdin)
		for input.Scan() {
			lines <- input.Text()
		}
		signals <- os.Interrupt
	}()
	all := make(chan string)
	go func() {
		defer close(all)
		for {
			select {
			case line := <-lines:
				all <- line
			case <-signals:
				return
			}
		}
	}()
	return all
}

func obey(disk *cutdisk.Disk, command string) error {
	name, argument, _ := strings.Cut(command, " ")
	switch name {
	case "cut":
		return cut(disk, argument)
	case "slow":
		delay, err := time.ParseDuration(argument)
		if err != nil {
			return err
		}
		disk.Slow(delay)
	case "full", "free":
		disk.Fill(name == "full")
	default:
		return errors.New("unknown command " + strconv.Quote(command))
	}
	fmt.Println("ok")
	return nil
}

func cut(disk *cutdisk.Disk, argument string) error {
	var chance *rand.Rand
	if argument != "" {
		seed, err := strconv.ParseUint(argument, 10, 64)
		if err != nil {
			return err
		}
		chance = rand.New(rand.NewPCG(seed, 0))
	}
	files, err := disk.Cut(chance)
	if err != nil {
		return err
	}
	var bytes int64
	for _, f := range files {
		fmt.Println("lost", f.Path, f.From, f.To)
		bytes += f.Bytes
	}
	fmt.Println("ok", bytes, "bytes lost")
	return nil
}
