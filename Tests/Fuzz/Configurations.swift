import Media
import NIOCore

extension FuzzTarget {
    /// Codec configurations and their contents. No tag header precedes them, whose parser would reject the input first.
    static let configurations = FuzzTarget("configurations", maxLength: 1_024) { input in
        var input = input
        let choice = input.byte()
        let bytes = input.rest
        switch choice % 9 {
        case 0:
            Anywhere.read(bytes) { (record) throws(MediaError) in try AVCConfiguration(record) }
            checkParameterSets(bytes, .avc)
        case 1:
            Anywhere.read(bytes) { (record) throws(MediaError) in try HEVCConfiguration(record) }
            checkParameterSets(bytes, .hevc)
        case 2: Anywhere.read(bytes) { (record) throws(MediaError) in try AV1Configuration(record) }
        case 3:
            Anywhere.read(bytes) { (unit) throws(MediaError) in
                let set = try AVCSequenceParameterSet(nal: unit)
                checkSize(set.width, set.height)
                return set
            }
        case 4:
            Anywhere.read(bytes) { (unit) throws(MediaError) in
                let set = try HEVCSequenceParameterSet(nal: unit)
                checkSize(set.width, set.height)
                return set
            }
        case 5: Anywhere.read(bytes) { (unit) throws(MediaError) in try AV1SequenceHeader(unit) }
        case 6:
            Anywhere.read(bytes) { (record) throws(MediaError) in
                let config = try AudioSpecificConfig(record)
                expect(config.sampleRate >= 0 && config.coreSampleRate >= 0, "\(config.sampleRate) Hz")
                return config
            }
        case 7: Anywhere.read(bytes) { (record) throws(MediaError) in try OpusHead(record) }
        default: Anywhere.read(bytes) { (record) throws(MediaError) in try FLACStreamInfo(record) }
        }
    }
}

/// Checks that callers can multiply the sides without overflow.
private func checkSize(_ width: Int, _ height: Int) {
    expect((0...1 << 24).contains(width) && (0...1 << 24).contains(height), "\(width) × \(height) pixels")
}

private func checkParameterSets(_ bytes: [UInt8], _ codec: VideoCodec) {
    guard let units = ParameterSets.units(in: ByteBuffer(bytes: bytes), of: codec) else { return }
    // Each set has a length prefix of at most four bytes instead of two.
    expect(units.readableBytes <= 3 * bytes.count, "\(units.readableBytes) bytes of parameter sets in \(bytes.count)")
}
