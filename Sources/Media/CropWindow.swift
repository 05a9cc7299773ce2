/// The crop offsets of an H.264 SPS (§7.4.2.1.1) or the conformance window of an H.265 one (§7.4.3.2.1): four counts of crop units.
struct CropWindow {
    var left = 0
    var right = 0
    var top = 0
    var bottom = 0

    init() {}

    init(_ bits: inout BitReader) throws(MediaError) {
        let max = UInt32(VideoFormat.maxDimension)
        self.left = Int(try bits.ue("crop left offset", max: max))
        self.right = Int(try bits.ue("crop right offset", max: max))
        self.top = Int(try bits.ue("crop top offset", max: max))
        self.bottom = Int(try bits.ue("crop bottom offset", max: max))
    }

    /// Returns the visible size in pixels. Throws if nothing is left, or a side exceeds `VideoFormat.maxDimension`.
    func crop(width: Int, height: Int, unitX: Int, unitY: Int) throws(MediaError) -> (width: Int, height: Int) {
        let shown = (width: width &- (self.left &+ self.right) &* unitX, height: height &- (self.top &+ self.bottom) &* unitY)
        for (field, pixels) in [("picture width", shown.width), ("picture height", shown.height)] {
            guard pixels > 0 else { throw .invalid(field: "\(field) after cropping", found: pixels, expected: "at least 1") }
            guard pixels <= VideoFormat.maxDimension else {
                throw .overLimit(field: field, found: pixels, max: VideoFormat.maxDimension)
            }
        }
        return shown
    }
}
