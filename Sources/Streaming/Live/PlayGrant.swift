package import Access
import NIOCore
import RTMP
import Relay
import Rooms
package import Support
import Synchronization

/// Reports the end of an admitted viewer to the back end, and releases its place in a talk channel, exactly once. Back end and channel both count
/// viewers, so this also runs on deinit. Any thread.
package final class PlayGrant: Sendable {
    package let request: AdmissionRequest
    package let pass: AdmissionPass
    /// Its place in a talk channel.
    package let listening: (any TalkListening)?
    private let admissions: AdmissionRules
    private let hasEnded = Atomic<Bool>(false)

    package init(
        _ request: AdmissionRequest, _ pass: AdmissionPass, _ admissions: AdmissionRules, _ listening: (any TalkListening)? = nil
    ) {
        self.request = request
        self.pass = pass
        self.admissions = admissions
        self.listening = listening
    }

    deinit { self.end(.clientClosed) }

    package func end(_ reason: CloseReason) {
        guard !self.hasEnded.exchange(true, ordering: .relaxed) else { return }
        self.listening?.end()
        self.admissions.notifyEnded(self.request, pass: self.pass, reason: reason)
    }
}
