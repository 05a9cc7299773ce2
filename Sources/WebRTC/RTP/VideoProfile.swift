/// H.264's profile as offers and sequence headers name it: profile_idc and the constraint flags (RFC 6184 §8.1). A value.
package struct H264Profile: Sendable, Hashable {
    package let idc: UInt8
    package let constraints: UInt8

    package init(idc: UInt8, constraints: UInt8) {
        self.idc = idc
        self.constraints = constraints
    }

    /// Reads "42e01f", of which the level is not heeded: browsers decode more than they say, and refuse nothing by it.
    init?(levelID: some StringProtocol) {
        guard levelID.utf8.count == 6, let number = UInt32(levelID, radix: 16) else { return nil }
        self.init(idc: UInt8(truncatingIfNeeded: number >> 16), constraints: UInt8(truncatingIfNeeded: number >> 8))
    }

    /// What a decoder of a profile can do: one of a higher rank decodes those below, with exceptions that no camera uses.
    var rank: Int {
        switch self.idc {
        // constraint_set1: what Main has in common with Baseline.
        case 66: self.constraints & 0x40 != 0 ? 0 : 1
        case 77: 2
        case 88: 3
        case 100: 4
        default: 5
        }
    }
}

/// A codec of pictures and its profile, as offers and sequence headers name them. A value.
package enum VideoProfile: Sendable, Hashable {
    package enum Codec: UInt8, Sendable, CaseIterable {
        case h264, h265, vp9, av1

        /// As `a=rtpmap` has it: RFC 6184 §8.2.1, RFC 7798 §7.2.1, RFC 9628 §7, AV1's payload format §7.2.1.
        package var name: String {
            switch self {
            case .h264: "H264"
            case .h265: "H265"
            case .vp9: "VP9"
            case .av1: "AV1"
            }
        }
    }

    case h264(H264Profile)
    /// general_profile_idc: 1 Main, 2 Main 10 (H.265 §A.3).
    case h265(UInt8)
    /// 0: 8 bits and 4:2:0; 1: other subsampling; 2 and 3: the same with 10 or 12 bits.
    case vp9(UInt8)
    /// 0 Main, 1 High, 2 Professional.
    case av1(UInt8)

    /// `number`: H.264's profile_idc, or the others' profile. `constraints`: H.264's.
    init(_ codec: Codec, _ number: UInt8, constraints: UInt8) {
        switch codec {
        case .h264: self = .h264(H264Profile(idc: number, constraints: constraints))
        case .h265: self = .h265(number)
        case .vp9: self = .vp9(number)
        case .av1: self = .av1(number)
        }
    }

    package var codec: Codec {
        switch self {
        case .h264: .h264
        case .h265: .h265
        case .vp9: .vp9
        case .av1: .av1
        }
    }

    var number: UInt8 {
        switch self {
        case .h264(let profile): profile.idc
        case .h265(let number), .vp9(let number), .av1(let number): number
        }
    }

    var constraints: UInt8 { if case .h264(let profile) = self { profile.constraints } else { 0 } }

    /// "H264", "H265 of profile 2"
    package var text: String { self.codec == .h264 ? "H264" : "\(self.codec.name) of profile \(self.number)" }

    /// Whether a decoder that offers this profile decodes the other one.
    func decodes(_ other: VideoProfile) -> Bool {
        switch (self, other) {
        // Browsers decode more than they say.
        case (.h264, .h264): true
        case (.h265(let own), .h265(let other)): own == other || own == 2 && other == 1
        case (.vp9(let own), .vp9(let other)): own == other
        case (.av1(let own), .av1(let other)): own >= other
        default: false
        }
    }
}
