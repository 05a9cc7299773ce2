/// The container that live media is cut into.
package enum ContainerFormat: Sendable, Hashable {
    /// ISO base media: an initialization segment, then pairs of moof and mdat (CMAF chunks, MediaSource's byte stream).
    case fmp4
    case mpegTS

    /// The container's name, for people.
    package var name: String { self == .fmp4 ? "MP4" : "MPEG-TS" }
}
