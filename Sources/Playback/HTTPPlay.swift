import Access
import Streaming

/// A viewer over HTTP that was admitted.
struct HTTPPlay: Sendable {
    let request: AdmissionRequest
    let grant: PlayGrant
    /// A talk channel's listener; nil for a stream's viewer.
    var listener: TalkListener?

    var pass: AdmissionPass { self.grant.pass }
}
