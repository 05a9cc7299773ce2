import Support

/// RongCloud's calls for a class's change: they keep its group equal to the members and pass messages on to its clients. Pure.
///
/// | effect | call |
/// |---|---|
/// | a member joins | `/group/create.json` by the first one, `/group/join.json` by others |
/// | a member leaves, is kicked or was away too long | `/group/quit.json` |
/// | the class ends | `/group/dismiss.json`, without `quit` for each member |
/// | a message to all, or to all except its sender | one `/message/group/publish.json` to the group |
/// | a message to one | `/message/group/publish.json` with `toUserId` |
extension RongCloudCall {
    /// Objects of messages for one member. All other objects that begin with `SC:` are for the group.
    private static let personal: Set<ClassroomMessage> = [.speech, .speechAnswer, .upgrade, .deviceTicket, .expiry]

    /// The calls that follow from one input's effects, in their order. `former`: the class before the input. `groupID` is also the group's name.
    ///
    /// A message is sent only if RongCloud connects at least one of its receivers.
    package static func calls(_ effects: [Gathering.Effect], former: Gathering, groupID: String) -> [RongCloudCall] {
        let ends = effects.contains { if case .ended = $0 { true } else { false } }
        var calls: [RongCloudCall] = []
        var isFirst = former.members.isEmpty
        var lastID = former.members.last?.id
        for effect in effects {
            switch effect {
            case .joined(let member):
                calls.append(
                    isFirst
                        ? .createGroup(userIDs: [member.id], groupID: groupID, name: groupID)
                        : .joinGroup(userIDs: [member.id], groupID: groupID, name: groupID))
                (isFirst, lastID) = (false, member.id)
            case .left(let member, _):
                lastID = member.id
                if !ends { calls.append(.quitGroup(userIDs: [member.id], groupID: groupID)) }
            case .ended: calls.append(.dismissGroup(userID: lastID ?? Classroom.serverID, groupID: groupID))
            case .send(let signal, let receivers): calls += self.messages(signal, to: receivers, former, groupID)
            case .close, .queueChanged, .ticketChanged, .event, .mute: break
            }
        }
        return calls
    }

    private static func messages(
        _ signal: Gathering.Signal, to receivers: [ConnectionID], _ former: Gathering, _ groupID: String
    ) -> [RongCloudCall] {
        let heard = receivers.filter(\.isRemote)
        guard !heard.isEmpty else { return [] }
        let (sender, object, content): (String, String, JSONValue)
        switch signal {
        case .said(let from, let word, let text, _): (sender, object, content) = (from.id, word, text)
        case .notified(let from, let word, let text, _): (sender, object, content) = (from, word, text)
        case .hello, .arrived, .away, .back, .departed, .commanded, .turn, .directed, .queue, .ticket, .closed: return []
        }
        let isForOne: Bool
        if case .said = signal {
            isForOne = false
        } else {
            // Members' own messages to all arrive as `said`, so those that arrive here are for one member.
            isForOne = ClassroomMessage(rawValue: object).map(self.personal.contains) ?? true
        }
        guard isForOne else {
            let includesSender = former.member(sender)?.connection.map(heard.contains) ?? false
            return [.publish(from: sender, groupID: groupID, object: object, content: content, includesSender: includesSender)]
        }
        return heard.compactMap { former.member(at: $0) }.map {
            .publish(
                from: sender, to: $0.id, groupID: groupID, object: object, content: content, includesSender: $0.id == sender)
        }
    }
}
