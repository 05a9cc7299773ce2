import Access
import Listening
import Logging
import NIOCore
package import RTMP
import Relay
import Rooms
import ServerConfiguration
import Streaming
package import Support
import Talk

/// Speaks and listens in a room's talk channel. Uses a connection of its own, or the one that pushes the camera.
extension RTMPConnection {
    func decideTalkPublish(_ streamID: UInt32, _ address: StreamAddress) {
        do throws(AdmissionRefusal) {
            let (name, request, pass, carriedFrom) = try self.checkTalk(.publish, address)
            if let refusal = self.services.admission.pushRates.refusal(of: request, pass) { throw refusal }
            let limit = self.services.config.limits.publishersTotal
            guard self.services.connections.admission.enterPublisher(limit: limit) else {
                self.services.connections.counters.limits.hit(.publishersTotal)
                throw AdmissionRefusal(
                    reason: .tooManyPublishers,
                    message: "The server already has its maximum of \(limit) publishers (limits.publishersTotal).")
            }
            self.holdPlace(pushes: true)
            self.input.isDeciding = true
            let connection = NIOLoopBound(self, eventLoop: self.loop.relay.eventLoop)
            let services = self.services
            Task {
                let found = await services.talk.resolved(name, request)
                var refusal = await services.admission.memoryRefusal(request.address.path, isPublish: true)
                if refusal == nil { refusal = RTMPConnection.otherRoom(found.name, than: carriedFrom) }
                let answer: Result<PublishAdmission, AdmissionRefusal> =
                    if let refusal { .failure(refusal) } else {
                        await services.talk.admitTalker(found.name, found.request, pass)
                    }
                connection.eventLoop.execute { connection.value.publishAdmitted(streamID, found.request, answer) }
            }
        } catch {
            self.refusePublish(streamID, error.reason, error.message, address)
        }
    }

    func decideTalkPlay(_ streamID: UInt32, _ address: StreamAddress) {
        do throws(AdmissionRefusal) {
            let (name, request, pass, carriedFrom) = try self.checkTalk(.play, address)
            try self.acquirePlayersPlace()
            let acceptsOpus = self.connect?.decodesOpus == true
            self.input.isDeciding = true
            let connection = NIOLoopBound(self, eventLoop: self.loop.relay.eventLoop)
            let role = RTMPRole(connection: connection, streamID: streamID)
            let services = self.services
            Task {
                let found = await services.talk.resolved(name, request)
                var refusal = await services.admission.memoryRefusal(request.address.path, isPublish: false)
                if refusal == nil { refusal = RTMPConnection.otherRoom(found.name, than: carriedFrom) }
                let answer: Result<(pass: AdmissionPass, listening: any TalkListening), AdmissionRefusal> =
                    if let refusal { .failure(refusal) } else {
                        await services.talk.admitListener(found.name, found.request, pass, codec: acceptsOpus ? .opus : .aac, role: role)
                    }
                connection.eventLoop.execute { connection.value.listeningAdmitted(streamID, found.request, answer) }
            }
        } catch {
            self.refusePlay(streamID, error.message, error.reason, address)
        }
    }

    private func listeningAdmitted(
        _ streamID: UInt32, _ request: AdmissionRequest,
        _ answer: Result<(pass: AdmissionPass, listening: any TalkListening), AdmissionRefusal>
    ) {
        guard !self.isEnding, !self.isGone else {
            if case .success(let admitted) = answer { admitted.listening.end() }
            return
        }
        switch answer {
        case .failure(let refusal): self.refusePlay(streamID, refusal.message, refusal.reason, request.address)
        case .success(let admitted) where admitted.listening.isOver:
            admitted.listening.end()
            self.refusePlay(streamID, "The room's talk channel has ended.", .roomEnded, request.address)
        case .success(let admitted) where !admitted.listening.mayPlay:
            admitted.listening.end()
            self.refusePlay(streamID, "The participant was kicked from the talk channel.", .kicked, request.address)
        case .success(let admitted): self.play(streamID, request, admitted.pass, admitted.listening)
        }
        self.decided()
    }

    /// Checks name, address and credential. A camera's push to the room on this connection is credential enough, but only for one name: its device is
    /// one participant, which must not return under another name. A voice's push is not enough. The room returned is the push's, if its credential
    /// is used; a device that pushes by its own name may use that for the channel, of which only the registry knows the room.
    private func checkTalk(
        _ action: AdmissionRequest.Action, _ address: StreamAddress
    ) throws(AdmissionRefusal) -> (TalkStreamName, AdmissionRequest, AdmissionPass, RoomID?) {
        let name: TalkStreamName
        do throws(TalkStreamNameError) { name = try TalkStreamName(address) } catch {
            throw AdmissionRefusal(reason: .badName, message: "\(address.path): \(error).")
        }
        let request = AdmissionRequest(
            .rtmpTalk, action: action, address: TalkStreamName.canonical(address), remote: self.remoteAddress, session: self.id)
        let push = self.publishings.first {
            $0.token != nil && $0.admission.session is RoomPublishSession
                && ($0.admission.session.roomID == name.roomID || $0.request.asked.name.exact == name.roomID.rawValue.exact)
        }
        let (pass, isCarried) = try self.services.talk.check(request, push: push.map { ($0.request, $0.admission.pass) }).get()
        if let push, isCarried, action == .publish, case .voice(let id) = name.target {
            guard (push.talkName ?? id.rawValue).exact == id.rawValue.exact else {
                throw AdmissionRefusal(
                    reason: .credentialWrong,
                    message: "\(name.path): the push's credential lets this connection speak only as \(push.talkName ?? "");"
                        + " another name needs its own credential.")
            }
            push.talkName = id.rawValue
        }
        return (name, request, pass, isCarried ? push?.admission.session.roomID : nil)
    }

    /// The refusal of a push's credential for a channel that is not of the push's room.
    static func otherRoom(_ name: TalkStreamName, than carriedFrom: RoomID?) -> AdmissionRefusal? {
        guard let carriedFrom, carriedFrom != name.roomID else { return nil }
        return AdmissionRefusal(
            reason: .credentialWrong,
            message: "\(name.path): the push's credential is for room \(carriedFrom); this needs its own credential.")
    }

    /// Closes the connection after a refusal. A refusal for talk, or by a draining server, leaves the connection's other roles, if any, running.
    package func refused(_ reason: CloseReason, _ detail: String, _ address: StreamAddress) {
        let isTalk = TalkStreamName.isTalk(address)
        if isTalk || reason == .serverShutdown, !self.publishings.isEmpty || !self.plays.isEmpty {
            self.runRequests()
            self.writer?.flush()
            return self.noteEnd(isTalk ? "Talk refused" : "Refused while draining", reason, detail)
        }
        self.runSends()
        self.close(reason, detail: detail)
    }

    private func noteEnd(_ line: Logger.Message, _ reason: CloseReason, _ detail: String) {
        guard let held = self.services.connections.roleFlood.pass(nowMs: self.nowMs) else { return }
        let metadata: Logger.Metadata = ["reason": "\(reason.rawValue)", "detail": "\(detail)"]
        self.log.write(line, metadata, heldBack: held)
    }

    /// Ends the role on this message stream, and the connection if it was the last.
    func endRole(_ streamID: UInt32, _ reason: CloseReason, _ what: String) {
        guard !self.isEnding else { return }
        let isOnly = self.publishings.count + self.plays.count <= 1
        if self.publishings.contains(where: { $0.streamID == streamID }) {
            self.session.publishEnded(streamID, Status(reason.publishCode, level: .error, reason.explaining(what)))
            self.runRequests()
            if !isOnly { self.endPublish(streamID, clean: true, .dropped) }
        } else if self.plays.contains(where: { $0.viewer.streamID == streamID }) {
            self.session.publisherLeft(streamID)
            self.session.playEnded(streamID, Status(StatusCode.playFailed, level: .error, reason.explaining(what)))
            self.runRequests()
            if !isOnly { self.endPlay(streamID) }
        } else {
            return
        }
        self.writer?.flush()
        if isOnly { self.close(reason, detail: what) } else { self.noteEnd("Talk ended", reason, what) }
    }
}
