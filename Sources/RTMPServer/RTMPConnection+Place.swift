import Access
import Listening
import Streaming
import Support

/// The connection's place among all: others may take it until the connection publishes or plays.
extension RTMPConnection {
    /// Keeps the place: a credential or an address was right.
    func holdPlace(pushes: Bool) { self.services.connections.admission.holds(self.id, self.host, pushes: pushes) }

    /// Keeps the place for a play. Throws if plays have all the places that they may have.
    func acquirePlayersPlace() throws(AdmissionRefusal) {
        guard !self.services.connections.admission.play(self.id, self.host) else { return }
        throw AdmissionRefusal(
            reason: .tooManyConnections, message: "The server has too many players; its last places are for pushes (limits.connections).")
    }

    /// Gives the place up to others if the connection neither publishes nor plays any more. Runs after each end and refusal.
    func settlePlace() {
        // A connection that ends keeps its place, until its last answer is sent.
        guard !self.isEnding, !self.isGone else { return }
        guard self.publishings.isEmpty else { return self.holdPlace(pushes: true) }
        guard self.plays.isEmpty else { return self.holdPlace(pushes: false) }
        self.services.connections.admission.rests(self.id, self.host)
    }
}
