extension TencentAction {
    /// The vendor's actions that this server does not offer. They are answered `UnsupportedOperation`, unknown names `InvalidAction`.
    static let unsupported = Set(
        unsupportedText.split(whereSeparator: \.isWhitespace).map(String.init))

    /// From version 2018-08-01, as named by the vendor's Python SDK 3.1.195.
    private static let unsupportedText = """
        AddCasterInputInfo AddCasterLayoutInfo AddCasterMarkPicInfo AddCasterMarkWordInfo AddCasterOutputInfo AddDelayLiveStream
        AddLiveDomain AddLiveWatermark AuthenticateDomainOwner CancelCommonMixStream CloseSourceStream CopyCaster CopyLiveAvatarRoom
        CreateAuditImages CreateAuditKeywordLib CreateAuditKeywords CreateAuditRule CreateAuditTemplate CreateCaster
        CreateCasterInputPushUrl CreateCasterPgm CreateCasterPgmFromPvw CreateCasterPvw CreateCommonMixStream CreateLiveAvatarCloneFigure
        CreateLiveAvatarRoom CreateLiveAvatarScript CreateLiveCallbackRule CreateLiveCallbackTemplate CreateLiveCloudEffect
        CreateLivePadRule CreateLivePadTemplate CreateLivePullStreamTask CreateLiveRecord CreateLiveRecordRule CreateLiveRecordTemplate
        CreateLiveSmartEraseRule CreateLiveSmartEraseTemplate CreateLiveSnapshotRule CreateLiveSnapshotTemplate CreateLiveStreamMonitor
        CreateLiveTimeShiftRule CreateLiveTimeShiftTemplate CreateLiveTranscodeRule CreateLiveTranscodeTemplate CreateLiveWatermarkRule
        CreatePullStreamConfig CreateRecordTask CreateSceneVideoTask CreateScreenshotTask CreateVideoRedrawTask DeleteAuditImages
        DeleteAuditKeywordLib DeleteAuditKeywords DeleteAuditRule DeleteAuditTemplate DeleteCaster DeleteCasterInputInfo
        DeleteCasterLayoutInfo DeleteCasterMarkPicInfo DeleteCasterMarkWordInfo DeleteCasterOutputInfo DeleteLiveAvatarCloneFigure
        DeleteLiveAvatarRoom DeleteLiveAvatarScript DeleteLiveCallbackRule DeleteLiveCallbackTemplate DeleteLiveDomain DeleteLivePadRule
        DeleteLivePadTemplate DeleteLivePullStreamTask DeleteLiveRecord DeleteLiveRecordRule DeleteLiveRecordTemplate
        DeleteLiveSmartEraseRule DeleteLiveSmartEraseTemplate DeleteLiveSnapshotRule DeleteLiveSnapshotTemplate DeleteLiveStreamMonitor
        DeleteLiveTimeShiftRule DeleteLiveTimeShiftTemplate DeleteLiveTranscodeRule DeleteLiveTranscodeTemplate DeleteLiveWatermark
        DeleteLiveWatermarkRule DeletePullStreamConfig DeleteRecordTask DeleteScreenshotTask DescribeAIGCTaskStatus
        DescribeAllStreamPlayInfoList DescribeAreaBillBandwidthAndFluxList DescribeAuditGroupTag DescribeAuditImages
        DescribeAuditKeywordLibs DescribeAuditKeywords DescribeAuditRules DescribeAuditTemplate DescribeAuditTemplates
        DescribeBackupStreamList DescribeBillBandwidthAndFluxList DescribeCallbackRecordsList DescribeCaster DescribeCasterDisplayInfo
        DescribeCasterEmergencyStatus DescribeCasterInputInfos DescribeCasterLayoutInfos DescribeCasterList DescribeCasterMarkPicInfos
        DescribeCasterMarkWordInfos DescribeCasterOutputInfos DescribeCasterPlayUrl DescribeCasterTransitionTypes
        DescribeCasterUserStatus DescribeConcurrentRecordStreamNum DescribeDeliverBandwidthList DescribeDeliverLogDownList
        DescribeGroupProIspPlayInfoList DescribeHttpStatusInfoList DescribeLiveAvatarBackgroundList DescribeLiveAvatarCloneFigureList
        DescribeLiveAvatarImageList DescribeLiveAvatarRooms DescribeLiveAvatarScripts DescribeLiveAvatarTemporaryScriptList
        DescribeLiveAvatarTimbreList DescribeLiveCallbackRules DescribeLiveCallbackTemplate DescribeLiveCallbackTemplates
        DescribeLiveCert DescribeLiveCerts DescribeLiveCloudEffectConfig DescribeLiveCloudEffectList DescribeLiveDelayInfoList
        DescribeLiveDomain DescribeLiveDomainCert DescribeLiveDomainCertBindings DescribeLiveDomainPlayInfoList DescribeLiveDomainReferer
        DescribeLiveDomains DescribeLiveEnhanceInfoList DescribeLivePackageInfo DescribeLivePadRules DescribeLivePadStreamList
        DescribeLivePadTemplate DescribeLivePadTemplates DescribeLivePlayAuthKey DescribeLivePullStreamTaskStatus
        DescribeLivePullStreamTasks DescribeLivePushAuthKey DescribeLiveRecordRules DescribeLiveRecordTemplate
        DescribeLiveRecordTemplates DescribeLiveSmartEraseRules DescribeLiveSmartEraseTemplate DescribeLiveSmartEraseTemplates
        DescribeLiveSnapshotRules DescribeLiveSnapshotTemplate DescribeLiveSnapshotTemplates DescribeLiveStreamMonitor
        DescribeLiveStreamMonitorList DescribeLiveTimeShiftBillInfoList DescribeLiveTimeShiftRules DescribeLiveTimeShiftTemplates
        DescribeLiveTimeShiftWriteSizeInfoList DescribeLiveTranscodeDetailInfo DescribeLiveTranscodeRules DescribeLiveTranscodeTemplate
        DescribeLiveTranscodeTemplates DescribeLiveTranscodeTotalInfo DescribeLiveWatermark DescribeLiveWatermarkRules
        DescribeLiveWatermarks DescribeLogDownloadList DescribeMonitorReport DescribeOriginStreamInfo DescribeOriginWhiteIpList
        DescribePlayErrorCodeDetailInfoList DescribePlayErrorCodeSumInfoList DescribeProIspPlaySumInfoList
        DescribeProvinceIspPlayInfoList DescribePullStreamConfigs DescribePullTransformPushInfo DescribePullTransformPushInfoList
        DescribePushBandwidthAndFluxList DescribeRecordTask DescribeSceneVideoTask DescribeScreenShotSheetNumList DescribeScreenshotTask
        DescribeStreamDayPlayInfoList DescribeStreamPackageIngestStatistics DescribeStreamPackageOutputStatistics
        DescribeStreamPackageRemuxStatistics DescribeStreamPlayInfoList DescribeStreamPushInfoList DescribeTimeShiftRecordDetail
        DescribeTimeShiftStreamList DescribeTopClientIpSumInfoList DescribeTranscodeTaskNum DescribeUploadStreamNums
        DescribeVisitTopSumInfoList EnableLiveDomain EnableOptimalSwitching ForbidLiveDomain GenerateLiveAvatarScriptBroadcast
        InsertTaskTemporaryFiles ModifyAuditKeywordLib ModifyAuditTemplate ModifyCaster ModifyCasterInputInfo ModifyCasterLayoutInfo
        ModifyCasterMarkPicInfo ModifyCasterMarkWordInfo ModifyCasterOutputInfo ModifyLiveAvatarRoom ModifyLiveAvatarScript
        ModifyLiveCallbackTemplate ModifyLiveDomainCertBindings ModifyLiveDomainReferer ModifyLivePadTemplate ModifyLivePlayAuthKey
        ModifyLivePlayDomain ModifyLivePullStreamTask ModifyLivePushAuthKey ModifyLiveRecordTemplate ModifyLiveSmartEraseTemplate
        ModifyLiveSnapshotTemplate ModifyLiveStreamMonitor ModifyLiveTimeShiftTemplate ModifyLiveTranscodeTemplate ModifyOriginStreamInfo
        ModifyPullStreamConfig ModifyPullStreamStatus ReleaseCaster RestartLivePullStreamTask ResumeDelayLiveStream SendLiveCloudEffect
        SendTemporaryScriptToAvatarRoom StartLiveAvatarRoom StartLivePadStream StartLiveStreamMonitor StopCasterPgm StopCasterPvw
        StopLiveAvatarRoom StopLivePadStream StopLiveRecord StopLiveStreamMonitor StopRecordTask StopScreenshotTask SwitchBackupStream
        SwitchCasterToEmergency UnBindLiveDomainCert UpdateLiveWatermark
        """
}
