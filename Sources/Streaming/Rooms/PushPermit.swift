package import Access
import NIOCore
import Relay
package import Rooms
import Support

/// What a caller wants to do with a stream's push.
package enum PushIntent: Sendable {
    /// Begin it, or take it over.
    case publish
    /// Report on it, pause it or end it.
    case report
}

/// What the page rules say of a request that its address alone would admit. A value.
package enum PageVerdict: Sendable {
    /// Nobody asked them, because no page speaks the door's protocol.
    case notAsked
    case mayAsk
    case refused(AdmissionRefusal)
}

/// Who asks to act on a push. A value.
package struct PushCaller: Sendable {
    package let request: AdmissionRequest
    /// What credential or address say of the caller; the hook has been asked only for ``PushIntent/publish``.
    package let pass: AdmissionPass
    private let page: PageVerdict
    /// The refusal of a credential that has expired. It holds unless the push that this credential began still runs.
    package let late: AdmissionRefusal?

    package init(_ request: AdmissionRequest, _ pass: AdmissionPass, page: PageVerdict, late: AdmissionRefusal? = nil) {
        self.request = request
        self.pass = pass
        self.page = page
        self.late = late
    }

    /// The refusal of the page rules; nil for a verified credential, and for a page that may ask.
    package var pageRefusal: AdmissionRefusal? {
        guard !self.pass.isVerified else { return nil }
        switch self.page {
        case .refused(let refusal): return refusal
        case .mayAsk: return nil
        case .notAsked:
            let isSafe = self.request.door.questions.page == .none
            return isSafe ? nil : AdmissionRefusal(reason: .accessDenied, message: "Web pages need a credential to push here.")
        }
    }
}

/// A caller's right to act on a push. A value.
package struct PushPermit: Sendable {
    /// The caller, as the hook named it if it was asked.
    package let pass: AdmissionPass
    /// The caller's running push on this node. Later pushes of the stream are not meant.
    package var running: PushSequence?
    /// Whether the stream is forbidden: a report is answered, but changes nothing.
    package var isForbidden = false
}

extension RoomAdmission {
    /// May this caller act on this stream's push? Every door asks here: RTMP's publish before it claims the stream, and the heartbeat.
    ///
    /// - A page may act only with a verified credential, or where the page rules let it use its user's address.
    /// - A user that was kicked from the room may not act.
    /// - To report, the caller must be the running publisher (``PublisherIdentity/actsFor(_:)``); one without a verified credential must also have
    ///   the publisher's address. While nothing runs, only a verified credential of the name may report; of a forbidden stream, whoever might push.
    ///
    /// For ``PushIntent/publish`` the claim on the stream decides by the same rule about a running publisher, and the store about bans, each at
    /// the one moment at which the answer holds.
    package func mayAct(_ intent: PushIntent, _ caller: PushCaller, on path: StreamPath) async -> Result<PushPermit, AdmissionRefusal> {
        if let refusal = caller.pageRefusal { return .failure(refusal) }
        if let refusal = self.keptOut(caller.pass, of: path.description) { return .failure(refusal) }
        switch intent {
        case .publish: return .success(PushPermit(pass: caller.pass))
        case .report: return await self.mayReport(caller, path)
        }
    }

    private func mayReport(_ caller: PushCaller, _ path: StreamPath) async -> Result<PushPermit, AdmissionRefusal> {
        let holder = await self.holder(of: path)
        var pass = caller.pass
        do throws(AdmissionRefusal) {
            var isHolder = try await self.isHolder(holder, caller, pass, path)
            // The hook that admitted the push may have named its publisher.
            if pass.needsHook || !isHolder, self.rules.hasHook(.publish) {
                pass = try await self.rules.ask(caller.request, pass: pass).get()
                if let refusal = self.keptOut(pass, of: path.description) { throw refusal }
                isHolder = try await self.isHolder(holder, caller, pass, path)
            }
            guard isHolder, !pass.needsHook || pass.isVerified else { throw self.refusal(of: caller, pass, holder, path) }
        } catch {
            return .failure(caller.late ?? error)
        }
        return .success(
            PushPermit(pass: pass, running: holder?.sequence, isForbidden: self.isForbidden(path)))
    }

    private func isForbidden(_ path: StreamPath) -> Bool { self.rooms.playRefusal(path.description) == .forbidden }

    /// The stream's publisher on this node.
    private struct Holder: Sendable {
        let identity: PublisherIdentity
        /// Nil for a publisher that is no room's.
        let sequence: PushSequence?
        /// Nil for a publisher that is no client.
        let publisher: (any ConnectedPublisher)?
    }

    private func holder(of path: StreamPath) async -> Holder? {
        let found = await self.streams.onHome(of: path.description) { home, stream -> Holder? in
            guard case .live(_, let identity)? = home.snapshot(of: stream)?.stream.phase else { return nil }
            let delegate = home.publisher(of: stream)
            return Holder(
                identity: identity, sequence: (delegate as? any RoomPublisher)?.sequence,
                publisher: (delegate as? any EndablePublisher)?.publisher)
        }
        return found ?? nil
    }

    private func isHolder(
        _ holder: Holder?, _ caller: PushCaller, _ pass: AdmissionPass, _ path: StreamPath
    ) async throws(AdmissionRefusal) -> Bool {
        guard let holder else {
            // The ban has ended the push: its publisher must learn to stop, though its credential may have expired, or none was needed.
            if self.isForbidden(path) { return true }
            guard pass.isVerified, caller.late == nil else { return false }
            return try await self.isHeldElsewhere(path, pass) ?? true
        }
        let identity = PublisherIdentity(pass.identity, rank: pass.rank)
        // An expired credential counts only for the very push that it began.
        guard caller.late == nil ? identity.actsFor(holder.identity) : identity == holder.identity else { return false }
        if pass.isVerified { return true }
        // Others can know the query of a push without a credential, so its address counts too.
        guard let remote = caller.request.remote?.ipAddress, let theirs = await holder.publisher?.snapshot().remote else { return false }
        return PublicAddress.host(theirs) == remote
    }

    /// Nil when no other node has a push of the stream.
    private func isHeldElsewhere(_ path: StreamPath, _ pass: AdmissionPass) async throws(AdmissionRefusal) -> Bool? {
        guard self.rooms.nodeNumber != 0 else { return nil }
        do {
            return try await self.rooms.isHeldElsewhere(
                path, by: PushClaim(identity: pass.identity, rank: pass.rank, takeover: .sameIdentity))
        } catch {
            throw AdmissionRefusal(reason: .registryUnavailable, message: "The rooms cannot be read at the moment; try again.")
        }
    }

    private func refusal(of caller: PushCaller, _ pass: AdmissionPass, _ holder: Holder?, _ path: StreamPath) -> AdmissionRefusal {
        guard holder == nil, !pass.isVerified else {
            return AdmissionRefusal(
                reason: .nameTaken, message: "\(path) is being published by another device, or with another credential.")
        }
        return AdmissionRefusal(
            reason: .credentialMissing, message: "Nobody publishes \(path); a report before the push needs the credential of its URL.")
    }
}
