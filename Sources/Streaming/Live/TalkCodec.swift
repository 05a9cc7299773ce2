/// The codec of a mix.
package enum TalkCodec: Hashable, CaseIterable, Sendable {
    /// AAC-LC, which all clients play.
    case aac
    /// Opus in Enhanced RTMP, for clients that announce it.
    case opus
}
