package pdf

// TextWithin is Text with another bound of its time.
var TextWithin = textWithin
