package import Rooms
import Support

/// An action with its parameters, read and within its limits. A value.
///
/// `DomainName` names the host that a publisher uses. This server has one set of streams for all of its hosts, so it is checked against the
/// setting and does not choose among streams.
package enum TencentAction: Sendable, Equatable {
    /// `DescribeLiveStreamOnlineList`
    case onlineList(app: String?, name: String?, Page)
    /// `DescribeLiveStreamState`
    case state(StreamPath)
    /// `DropLiveStream`
    case drop(StreamPath)
    /// `ForbidLiveStream`. `untilMs`: since 1970; nil: for the usual time.
    case forbid(StreamPath, untilMs: Int64?, reason: String)
    /// `ResumeLiveStream`
    case resume(StreamPath)
    /// `DescribeLiveStreamPublishedList` and `DescribeLiveStreamEventList`
    case history(History, Page, list: HistoryList)
    /// `DescribeLiveForbidStreamList`, of older SDKs
    case forbidList(name: String?, Page)
    /// `DescribeLiveStreamPushInfoList`
    case pushInfo(app: String?, Page)

    /// A page of a list, counted from 1.
    package struct Page: Sendable, Equatable {
        package let number: Int
        package let size: Int

        package var offset: Int { (self.number - 1) * self.size }
    }

    /// Pushes that ended within a span.
    package struct History: Sendable, Equatable {
        package var app: String?
        package var name: String?
        /// Whether `name` is the whole name; otherwise it is a part of it.
        package var isExact = false
        /// Milliseconds since 1970.
        package var fromMs: Int64
        package var toMs: Int64
        /// Only pushes that brought media.
        package var onlyWithMedia = false
        package var isAscending = false
    }

    /// The member of the answer that holds a history.
    package enum HistoryList: String, Sendable { case published = "PublishInfo", events = "EventList" }

    private static let longestSpanMs: Int64 = 31 * 86_400_000
    private static let reasonBytes = 2_048

    /// The stream that the action is about; nil for lists.
    package var stream: StreamPath? {
        switch self {
        case .state(let path), .drop(let path), .forbid(let path, _, _), .resume(let path): path
        case .onlineList, .history, .forbidList, .pushInfo: nil
        }
    }

    /// The least role that a key needs for it.
    package var role: TokenRole { self.isChange ? .ops : .backend }

    package var isChange: Bool {
        switch self {
        case .drop, .forbid, .resume: true
        case .onlineList, .state, .history, .forbidList, .pushInfo: false
        }
    }

    /// Whether an action of this name is a change, whatever its fields.
    package static func isChange(named name: String) -> Bool { ["DropLiveStream", "ForbidLiveStream", "ResumeLiveStream"].contains(name) }

    // MARK: - Reading

    /// Throws `UnsupportedOperation` for the vendor's other actions, `InvalidAction` for names that the vendor does not have either, and the codes of
    /// parameters. `domains`: the accepted ones; an empty list accepts all.
    package init(_ name: String, _ fields: TencentFields, domains: [String]) throws(TencentError) {
        var fields = fields
        let read = Self.readers[name]
        guard let read else {
            guard Self.unsupported.contains(name) else { throw TencentError(.invalidAction, "There is no action \(name.prefix(80)).") }
            throw TencentError(.unsupported, "This server does not offer \(name).")
        }
        let domain: String?
        (self, domain) = try read(&fields)
        try fields.finish()
        if let domain, !domains.isEmpty, !domains.contains(domain.lowercased()) {
            throw TencentError(.noSuchDomain, "The domain \(domain.prefix(80)) is none of this server's.")
        }
    }

    private typealias Reader = @Sendable (inout TencentFields) throws(TencentError) -> (TencentAction, domain: String?)

    private static let readers: [String: Reader] = [
        "DescribeLiveStreamOnlineList": { (fields) throws(TencentError) in
            let domain = try fields.text("DomainName")
            let (app, name) = (try fields.name("AppName"), try fields.name("StreamName"))
            return (.onlineList(app: app, name: name, try Self.page(&fields, sizes: 10...300_000, usual: 10)), domain)
        },
        "DescribeLiveStreamState": { (fields) throws(TencentError) in
            let (path, domain) = try Self.stream(&fields)
            return (.state(path), domain)
        },
        "DropLiveStream": { (fields) throws(TencentError) in
            let (path, domain) = try Self.stream(&fields)
            return (.drop(path), domain)
        },
        "ForbidLiveStream": { (fields) throws(TencentError) in
            let (path, domain) = try Self.stream(&fields)
            let until = try fields.time("ResumeTime")
            return (.forbid(path, untilMs: until, reason: try fields.text("Reason", atMost: Self.reasonBytes) ?? ""), domain)
        },
        "ResumeLiveStream": { (fields) throws(TencentError) in
            let (path, domain) = try Self.stream(&fields)
            return (.resume(path), domain)
        },
        "DescribeLiveStreamPublishedList": { (fields) throws(TencentError) in
            let domain = try fields.needed("DomainName")
            let history = try Self.history(&fields)
            return (.history(history, try Self.page(&fields, sizes: 10...100, usual: 10), list: .published), domain)
        },
        "DescribeLiveStreamEventList": { (fields) throws(TencentError) in
            let domain = try fields.text("DomainName")
            var history = try Self.history(&fields)
            history.onlyWithMedia = try fields.number("IsFilter", 0...1, fallback: 0) == 1
            history.isExact = try fields.number("IsStrict", 0...1, fallback: 0) == 1
            history.isAscending = try fields.number("IsAsc", 0...1, fallback: 0) == 1
            return (.history(history, try Self.page(&fields, sizes: 1...100, usual: 10), list: .events), domain)
        },
        "DescribeLiveForbidStreamList": { (fields) throws(TencentError) in
            (.forbidList(name: try fields.name("StreamName"), try Self.page(&fields, sizes: 1...100, usual: 10)), nil)
        },
        "DescribeLiveStreamPushInfoList": { (fields) throws(TencentError) in
            let domain = try fields.text("PushDomain")
            let app = try fields.name("AppName")
            return (.pushInfo(app: app, try Self.page(&fields, sizes: 1...100_000, usual: 200)), domain)
        },
    ]

    /// The names of the actions that this server offers.
    package static var offered: [String] { self.readers.keys.sorted() }

    private static func stream(_ fields: inout TencentFields) throws(TencentError) -> (StreamPath, domain: String) {
        let domain = try fields.needed("DomainName")
        let (app, name) = (try fields.needed("AppName"), try fields.needed("StreamName"))
        guard let path = StreamPath("\(app)/\(name)"), path.app.exact == app.exact, RoomLimits.isPlain(path.description),
            !path.description.contains("?"),
            !name.split(separator: "/").contains(where: { $0 == "." || $0 == ".." }),
            name.unicodeScalars.count <= RoomLimits.streamNameLength
        else {
            throw TencentError(.invalidStreamName, "There can be no stream \(name.prefix(80)) of the app \(app.prefix(80)).")
        }
        if let problem = NameForm.problem(path.description) {
            throw TencentError(.invalidStreamName, "There can be no stream \(name.prefix(80)): the name \(problem).")
        }
        return (path, domain)
    }

    private static func page(_ fields: inout TencentFields, sizes: ClosedRange<Int64>, usual: Int64) throws(TencentError) -> Page {
        let number = try fields.number("PageNum", 1...1_000_000, fallback: 1)
        return Page(number: Int(number), size: Int(try fields.number("PageSize", sizes, fallback: usual)))
    }

    private static func history(_ fields: inout TencentFields) throws(TencentError) -> History {
        let (from, to) = (try fields.neededTime("StartTime"), try fields.neededTime("EndTime"))
        guard from <= to else { throw TencentError(.invalidValue, "EndTime is before StartTime.") }
        guard to - from <= Self.longestSpanMs else {
            throw TencentError(.invalidValue, "From StartTime to EndTime is more than a month; ask for it in parts.")
        }
        return History(app: try fields.name("AppName"), name: try fields.name("StreamName"), fromMs: from, toMs: to)
    }
}
