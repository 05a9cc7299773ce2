/// A way into the server for clients. Each request for admission, each takeover and each part of the HTTP port names its door, and ``questions`` is
/// exhaustive: a door that is added does not compile until it answers each question. SECURITY.md has the table; `DoorTests` asks each door. A value.
package enum Door: String, CaseIterable, Sendable {
    case rtmpPublish = "RTMP publish"
    case rtmpPlay = "RTMP play"
    case rtmpTalk = "RTMP talk"
    case player = "FLV, MP4 and WebSocket players"
    case hls = "HLS"
    case whep = "WHEP"
    case whip = "WHIP"
    case listener = "talk listeners over HTTP"
    case heartbeat = "push heartbeat"
    case mesh = "`/mesh`"
    case channel = "`/channel`"
    case board = "`/board`"
    case ticket = "tickets of apps"
    case classroom = "classes"
    case machine = "claw machines"
    case cloud = "Tencent-compatible API"
    case appPage = "pages of apps"
    case api = "API, `/metrics`"
    case events = "event feed"
    case console = "console"
    case health = "health checks"

    /// May this page ask?
    package enum Page: String, Sendable {
        case none = "no page speaks it"
        case rules = "`PageRules`"
        case token = "shown token only"
        case own = "`RequestOrigin`"
        case anyone = "the same for all"
    }

    /// Who is the caller?
    package enum Caller: String, Sendable {
        case credential = "`AdmissionRules`"
        case channelToken = "`ChannelToken`"
        case channelTokenOrAddress = "`ChannelToken`, or the address"
        case signature = "`TencentSignature`"
        case token = "`Authentication`"
        case nobody = "nobody"
    }

    /// May the caller do this?
    package enum Act: String, Sendable {
        case push = "`RoomAdmission.mayAct`"
        case play = "`RoomAdmission.admitPlay`, `keptOut`"
        case talk = "`Talkback`"
        case member = "the token's room"
        case role = "the token's role and reach"
        case nothing = "nothing to do"
    }

    /// Is this name well-formed?
    package enum Name: String, Sendable {
        case stream = "`StreamAddress`"
        case fields = "`NameForm`, by field"
        case none = "none"
    }

    /// How many has this address?
    package enum Limit: String, Sendable {
        case connection = "`PlaceTable`"
        case player = "`PlaceTable`, `HTTPPlaceTable`"
        case request = "`HTTPPlaceTable`"
    }

    /// Whose bytes are these?
    package enum Bytes: String, Sendable {
        case process = "`MemoryLedger`"
        case http = "`HTTPHoldings`"
    }

    package struct Questions: Sendable {
        package let page: Page
        package let caller: Caller
        package let act: Act
        package let name: Name
        package let limit: Limit
        package let bytes: Bytes
    }

    /// The door's answers.
    package var questions: Questions {
        func rtmp(_ act: Act) -> Questions {
            Questions(page: .none, caller: .credential, act: act, name: .stream, limit: .connection, bytes: .process)
        }
        func http(_ page: Page, _ caller: Caller, _ act: Act, _ name: Name, _ limit: Limit = .request) -> Questions {
            Questions(page: page, caller: caller, act: act, name: name, limit: limit, bytes: .http)
        }
        return switch self {
        case .rtmpPublish: rtmp(.push)
        case .rtmpPlay: rtmp(.play)
        case .rtmpTalk: rtmp(.talk)
        case .player: http(.rules, .credential, .play, .stream)
        case .hls: http(.rules, .credential, .play, .stream, .player)
        case .whep: http(.rules, .credential, .play, .stream, .connection)
        case .whip: http(.rules, .credential, .push, .stream, .connection)
        case .listener: http(.rules, .credential, .talk, .stream)
        case .heartbeat: http(.rules, .credential, .push, .stream)
        case .mesh: http(.rules, .channelTokenOrAddress, .member, .fields)
        case .channel, .board: http(.rules, .channelToken, .member, .fields)
        case .ticket: http(.rules, .channelToken, .nothing, .fields)
        case .classroom: http(.rules, .channelTokenOrAddress, .member, .fields)
        case .machine: http(.rules, .channelTokenOrAddress, .member, .fields)
        case .cloud: http(.token, .signature, .role, .fields)
        case .api: http(.token, .token, .role, .fields)
        case .events: http(.token, .token, .role, .fields)
        case .console: http(.own, .token, .role, .none)
        case .appPage, .health: http(.anyone, .nobody, .nothing, .none)
        }
    }
}
