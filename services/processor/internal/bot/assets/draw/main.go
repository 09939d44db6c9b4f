// Draw draws the demo bot's picture: two speech bubbles on a plain background. The picture is committed; go
// generate in the folder above runs this program.
package main

import (
	"flag"
	"image"
	"image/color"
	"image/png"
	"log"
	"math"
	"os"
)

const (
	width, height = 480, 300
	samples       = 4 // per pixel and axis: smooth edges
)

func main() {
	out := flag.String("o", "parley.png", "file to write")
	flag.Parse()
	f, err := os.Create(*out)
	if err != nil {
		log.Fatalln("draw:", err)
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(f, draw()); err != nil {
		log.Fatalln("draw:", err)
	}
	if err := f.Close(); err != nil {
		log.Fatalln("draw:", err)
	}
}

func draw() *image.Paletted {
	img := image.NewPaletted(image.Rect(0, 0, width, height), palette())
	for y := range height {
		for x := range width {
			img.Set(x, y, pixel(x, y))
		}
	}
	return img
}

var (
	ground = color.RGBA{0xf3, 0xf6, 0xfb, 0xff}
	teal   = color.RGBA{0x12, 0x7c, 0x86, 0xff}
	orange = color.RGBA{0xf2, 0x8f, 0x3b, 0xff}
	white  = color.RGBA{0xff, 0xff, 0xff, 0xff}
)

// palette holds the plain colours and the steps between those that meet: 64 colours make a small file.
func palette() color.Palette {
	p := color.Palette{}
	pairs := [][2]color.RGBA{{ground, teal}, {ground, orange}, {teal, orange}, {teal, white}, {orange, white}}
	for _, pair := range pairs {
		for i := range 13 {
			p = append(p, mix(pair[0], pair[1], float64(i)/12))
		}
	}
	return p
}

func mix(a, b color.RGBA, t float64) color.RGBA {
	part := func(x, y uint8) uint8 { return uint8(math.Round(float64(x)*(1-t) + float64(y)*t)) }
	return color.RGBA{part(a.R, b.R), part(a.G, b.G), part(a.B, b.B), 0xff}
}

// pixel averages the samples of one pixel.
func pixel(x, y int) color.RGBA {
	var r, g, b int
	for i := range samples {
		for j := range samples {
			c := colourAt(float64(x)+(float64(i)+0.5)/samples, float64(y)+(float64(j)+0.5)/samples)
			r += int(c.R)
			g += int(c.G)
			b += int(c.B)
		}
	}
	n := samples * samples
	return color.RGBA{uint8(r / n), uint8(g / n), uint8(b / n), 0xff}
}

func colourAt(x, y float64) color.RGBA {
	front := inBubble(x, y, 190, 120, 240, 130, 34) || inTail(x, y, 380, 235, 26)
	back := inBubble(x, y, 50, 45, 230, 125, 34) || inTail(x, y, 95, 160, 26)
	switch {
	case front && dot(x, y, 310, 185, 3, 40, 11):
		return white
	case front:
		return orange
	case back && (line(x, y, 85, 90, 150) || line(x, y, 85, 118, 90)):
		return white
	case back:
		return teal
	}
	return ground
}

// inBubble reports whether a point is in a rounded rectangle.
func inBubble(x, y, left, top, w, h, radius float64) bool {
	dx := math.Max(math.Abs(x-(left+w/2))-(w/2-radius), 0)
	dy := math.Max(math.Abs(y-(top+h/2))-(h/2-radius), 0)
	return dx*dx+dy*dy <= radius*radius
}

// inTail reports whether a point is in the small triangle below a bubble.
func inTail(x, y, left, top, size float64) bool {
	return x >= left && y >= top && (x-left)+(y-top)/1.6 <= size
}

// dot is one of n dots in a row whose middle is at cx, cy.
func dot(x, y, cx, cy float64, n int, gap, radius float64) bool {
	for i := range n {
		if math.Hypot(x-(cx+(float64(i)-float64(n-1)/2)*gap), y-cy) <= radius {
			return true
		}
	}
	return false
}

// line is a thick stroke with round ends.
func line(x, y, left, cy, length float64) bool {
	return inBubble(x, y, left, cy-6, length, 12, 6)
}
