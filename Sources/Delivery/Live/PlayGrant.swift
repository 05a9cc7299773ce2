package import Access
import NIOCore
import RTMP
import Relay
import Rooms
package import Support
import Synchronization

/// Reports the end of an admitted viewer to the back end, exactly once. The back end may count viewers, so this happens whatever becomes of
/// the viewer. Any thread.
package final class PlayGrant: Sendable {
    package let pass: AdmissionPass
    private let request: AdmissionRequest
    private let admissions: AdmissionRules
    private let hasEnded = Atomic<Bool>(false)

    package init(_ request: AdmissionRequest, _ pass: AdmissionPass, _ admissions: AdmissionRules) {
        self.request = request
        self.pass = pass
        self.admissions = admissions
    }

    deinit { self.end(.clientClosed) }

    package func end(_ reason: CloseReason) {
        guard !self.hasEnded.exchange(true, ordering: .relaxed) else { return }
        self.admissions.notifyEnded(self.request, pass: self.pass, reason: reason)
    }
}
