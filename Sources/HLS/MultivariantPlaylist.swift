extension MediaWindow {
    /// Returns the Multivariant Playlist; nil before `isReady`, or if a playlist cannot hold the URI. Its only variant is the media
    /// playlist at `mediaURI`, including that URI's query.
    ///
    /// RFC 8216bis §4.4.6.2. Rates are measured. Has EXT-X-INDEPENDENT-SEGMENTS (§4.4.2.1) while all segments start with a keyframe.
    package func multivariantPlaylist(mediaURI: String) -> String? {
        guard self.isReady, let format = self.format, let rates = self.rates.rates else { return nil }
        let uri = mediaURI.utf8
        guard let first = uri.first, first != UInt8(ascii: "#"), uri.count <= 4_096, uri.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        var text = "#EXTM3U\n"
        if self.isIndependent { text += "#EXT-X-INDEPENDENT-SEGMENTS\n" }
        text += "#EXT-X-STREAM-INF:BANDWIDTH=\(rates.peak),AVERAGE-BANDWIDTH=\(rates.average)"
        if !format.codecs.isEmpty { text += ",CODECS=\"\(format.codecs)\"" }
        if format.hasVideo {
            if let width = format.width, let height = format.height, (1...65_535).contains(width), (1...65_535).contains(height) {
                text += ",RESOLUTION=\(width)x\(height)"
            }
            if let rate = format.frameRate, rate > 0, rate <= 1_000 {
                var writer = PlaylistWriter(capacity: 16)
                writer.writeSeconds(millis: Int64((rate * 1_000).rounded()))
                text += ",FRAME-RATE=\(writer.finish().text)"
            }
        }
        text += "\n\(mediaURI)\n"
        return text
    }
}
