import Access
import Delivery

/// A viewer over HTTP that was admitted.
struct HTTPPlay: Sendable {
    let request: AdmissionRequest
    let grant: PlayGrant

    var pass: AdmissionPass { self.grant.pass }
}
